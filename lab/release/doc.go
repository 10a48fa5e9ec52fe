// Package release tests the files for deployment: the image, systemd's units and Kubernetes' manifests. Its commands
// make releases (cut), check that users can install them (check), maintain go.mod (tidy) and print NOTICE (notice).
package release
