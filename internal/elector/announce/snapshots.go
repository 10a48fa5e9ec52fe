package announce

// History is K, about the largest number of records between two Snapshots: a reader that begins 2K records
// before a log's end finds one.
const History = 1000
