/*
Package browser looks at the page of package nelihttp in a real Chromium. Its tests start
members on a broker in memory, each with a page of its own, and check what the browser shows
while one of them is cut off.

The tests need Chromium: Debian's (apt-get install chromium), or what NELI_CHROMIUM names.
`make integration` leaves them to `make browser`.
*/
package browser
