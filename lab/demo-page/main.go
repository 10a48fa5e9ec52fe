//go:build !js

// Command demo-page is the program of a page that shows and explains how leaders are elected: the library with a Kafka in
// memory and five members, compiled to WebAssembly. `make demo-page` writes the page, one file that a browser opens
// without a server.
package main

import "log"

func main() { log.Fatal("demo-page runs in a browser: make demo-page") }
