// Package roster knows which members are there, and plans who may be given which roles.
package roster
