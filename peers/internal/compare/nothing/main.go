// Command nothing is what services have in any case: an HTTP server.
package main

import "net/http"

func main() { panic(http.ListenAndServe(":0", nil)) }
