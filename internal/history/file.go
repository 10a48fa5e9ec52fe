package history

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/kafka"
)

// A file of records has a JSON object on each line: first a header, with the fields of Log, then the
// group's records, those of a partition in log order. A line without a record says that the log was read to there.

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
	Record    json.RawMessage `json:"record,omitempty"`
}

// Recorder writes a file of records.
type Recorder struct {
	to      *json.Encoder
	codec   lease.Codec
	others  map[int]Entry // by partition: its newest record, if that is not the group's, or malformed
	Records int           // how many it has written
}

// NewRecorder writes the first line.
func NewRecorder(w io.Writer, log Log) (*Recorder, error) {
	r := &Recorder{to: json.NewEncoder(w), codec: lease.Codec{Group: log.Group, Log: log.TopicID}, others: map[int]Entry{}}
	r.to.SetEscapeHTML(false) // escaped, a record could be longer than records may be
	return r, r.to.Encode(fileHeader{fileVersion, log})
}

// Add writes the next record of a partition, if it is one of the group, of this version or a newer one.
func (r *Recorder) Add(e Entry) error {
	if _, err := r.codec.Decode(e.Value); err != nil && !errors.Is(err, lease.ErrNewer) {
		r.others[e.Partition] = e
		return nil
	}
	if len(e.Value) > lease.MaxRecord { // only its beginning was decoded: it may be no JSON
		e.Value = r.codec.Encode(&lease.Record{Kind: "large"}) // an unknown kind is of a newer version, too
	}
	delete(r.others, e.Partition)
	r.Records++
	return r.to.Encode(fileRecord{e.Partition, e.Offset, e.Time, e.Value})
}

// End writes, for each partition whose last record is not the group's, up to where it was read.
func (r *Recorder) End() error {
	for _, p := range slices.Sorted(maps.Keys(r.others)) {
		if err := r.to.Encode(fileRecord{Partition: p, Offset: r.others[p].Offset}); err != nil {
			return err
		}
	}
	return nil
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

// quiet is how long Fetch waits for the next record of a partition that is not whole yet. If none comes, it takes the
// rest of the logs for gaps, which compaction and transactions leave.
const quiet = 5 * time.Second

// Fetch reads a topic from its beginning up to the end that it has now. It calls begin once, then add for every record,
// whatever group it is of. If none comes for five seconds, it returns without the rest, which Result names as unproven,
// and returns the newest passing error since the last record. It returns the first error that lasts, of begin or of add.
func Fetch(ctx context.Context, admin kafka.Admin, reader kafka.LogReader, topic, group string, begin func(Log) error, add func(Entry) error) error {
	info, err := admin.Topic(ctx, topic)
	if err != nil {
		return err
	}
	ends, err := admin.Offsets(ctx, topic, info.Partitions)
	if err != nil {
		return err
	}
	log := Log{Group: group, Topic: topic, TopicID: info.ID}
	var whole []bool
	left := 0
	for _, e := range ends {
		log.Starts, log.Ends = append(log.Starts, e.Start), append(log.Ends, e.End)
		whole = append(whole, e.End <= e.Start)
		if e.End > e.Start {
			left++
		}
	}
	if err := begin(log); err != nil {
		return err
	}
	if err := reader.Assign(topic, log.Starts); err != nil {
		return err
	}
	var trouble error
	for last, polls := time.Now(), 0; left > 0; polls++ {
		r, ok, err := reader.Poll(100 * time.Millisecond)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err):
			return fmt.Errorf("read topic %s: %w", topic, err)
		case err != nil:
			trouble = err
		case ok && r.Partition >= 0 && r.Partition < len(ends):
			if whole[r.Partition] {
				break // others go on writing
			}
			if r.Time.UnixMilli() < 0 || r.Time.Year() > 9998 { // −1 is no time, and JSON has no year 10000, of any time zone
				r.Time = time.Time{}
			}
			if r.Offset < ends[r.Partition].End {
				if err := add(Entry{r.Partition, r.Offset, r.Time, r.Value}); err != nil {
					return err
				}
			}
			last, polls, trouble = time.Now(), 0, nil // after add, which may wait for the reader of a pipe
			if r.Offset >= ends[r.Partition].End-1 {
				whole[r.Partition] = true
				left--
			}
		}
		if polls > 20 && time.Since(last) > quiet { // one poll takes longer if this process is stopped meanwhile
			return trouble
		}
	}
	return nil
}

// final reports whether a reader's error lasts.
func final(err error) bool {
	for _, kind := range []error{kafka.ErrOutOfRange, kafka.ErrTruncated, kafka.ErrUnreadable, kafka.ErrUnknownTopic, kafka.ErrAuthorization, kafka.ErrAuthentication, kafka.ErrClientFatal} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
