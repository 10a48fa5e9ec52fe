/*
Package browser tests the page of package nelihttp, and that of demo-page, in a real Chromium. The tests start members on a broker in
memory, each with its own page, and check what the browser shows while one of them is cut off.

The tests need Chromium: Debian's (apt-get install chromium), or the one that NELI_CHROMIUM names. `make
integration` does not run them; `make browser` does.
*/
package browser
