// Package migration has programs before and after they moved to package neli, a directory for each
// system that they came from. Both are compiled, and the latter are run by the tests;
// docs/migration.md shows them. It is a module of its own, so that nobody who uses neli fetches the
// clients of those systems.
package migration
