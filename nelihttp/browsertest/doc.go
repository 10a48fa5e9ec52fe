/*
Package browsertest looks at the page of package nelihttp in a real Chromium: members on
a broker in memory, each with a page of its own, and what the browser shows of them while one is cut
off. It is a module of its own, so that nobody who uses the library gets what drives a browser.

The tests need Chromium: Debian's, apt-get install chromium, or what NELI_CHROMIUM names.
*/
package browsertest
