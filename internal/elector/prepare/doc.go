// Package prepare says what a member prepares of the roles that others offer it, and calls the application's Prepare.
package prepare
