// Package migration has programs before and after their move to package neli, in a directory for each system
// that they came from. Both are compiled, and tests run the latter. docs/migration.md links to them. It is a
// module of its own, so that users of neli do not have to fetch the clients of those systems.
package migration
