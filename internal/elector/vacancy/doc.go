// Package vacancy knows which roles are vacant, and says when this process claims them.
package vacancy
