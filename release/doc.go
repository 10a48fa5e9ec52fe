// Package release tests what is deployed: the image, systemd's units, Kubernetes' manifests. Its
// commands make releases (cut), tell whether users can install them (check), and keep go.mod (tidy)
// and NOTICE (notice).
package release
