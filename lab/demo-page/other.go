//go:build !js

package main

func main() { panic("demo-page runs in a browser: make demo-page") }
