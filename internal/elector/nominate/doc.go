// Package nominate keeps what a nominator said of one partition, and says when to make room for other members.
package nominate
