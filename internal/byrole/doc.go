// Package byrole numbers the roles of a shard and maps them to values.
package byrole
