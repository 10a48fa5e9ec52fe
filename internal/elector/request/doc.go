// Package request has what processes ask of each other beside the lease, and the answers.
package request
