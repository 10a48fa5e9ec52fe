package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A file of records has a JSON object on each line: first a header, with the fields of Log, then the
// group's records, those of a partition in log order.

const (
	fileVersion = 1
	maxLine     = 4 << 20 // records of this version have 64 KiB at most
)

type fileHeader struct {
	Version int `json:"neli_history"`
	Log
}

type fileRecord struct {
	Partition int             `json:"partition"`
	Offset    int64           `json:"offset"`
	Time      time.Time       `json:"time,omitzero"`
	Record    json.RawMessage `json:"record"`
}

// WriteHeader writes the first line of a file of records.
func WriteHeader(w io.Writer, log Log) error {
	return json.NewEncoder(w).Encode(fileHeader{fileVersion, log})
}

// WriteRecord writes a record's line. Its value must be JSON, as that of all records of a group is.
func WriteRecord(w io.Writer, e Entry) error {
	return json.NewEncoder(w).Encode(fileRecord{e.Partition, e.Offset, e.Time, e.Value})
}

// ReadFile reads a file of records. Its errors name the line.
func ReadFile(r io.Reader) (*History, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var h *History
	n := 0
	for lines.Scan() {
		n++
		var err error
		if h == nil {
			h, err = headerOf(lines.Bytes())
		} else {
			var l fileRecord
			if err = json.Unmarshal(lines.Bytes(), &l); err == nil {
				err = h.Add(Entry{l.Partition, l.Offset, l.Time, l.Record})
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: must be at most %d bytes", n+1, maxLine)
	case err != nil:
		return nil, err
	case h == nil:
		return nil, errors.New("is empty, must begin with the line that neli history --records writes first")
	}
	return h, nil
}

func headerOf(line []byte) (*History, error) {
	var header fileHeader
	switch err := json.Unmarshal(line, &header); {
	case header.Version != fileVersion:
		return nil, fmt.Errorf("neli_history: is %d, must be %d: is it a file that neli history --records has written?", header.Version, fileVersion)
	case err != nil:
		return nil, err
	}
	return New(header.Log)
}
