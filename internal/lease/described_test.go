package lease

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCheckAdvertise(t *testing.T) {
	long := "https://" + strings.Repeat("a", maxAdvertise-len("https://"))
	for _, s := range []string{"", "a:1", "10.0.0.8:8080", "app-0.app_x.svc:65535", "[::1]:8080", "[fe80::1%25eth0]:80", "localhost:80", "Zürich:80",
		"http://a", "https://a.example.com:8443/app?a=1&b", "HTTPS://a", "ws://a", "wss://a", "grpc://a:1", "grpcs://[::1]:1", long} {
		require.Empty(t, CheckAdvertise(s), s)
	}
	for s, rule := range map[string]string{
		"a": "must be host:port", "10.0.0.8": "must be host:port", "a:0": "must be host:port", "a:65536": "must be host:port", "a:http": "must be host:port", "a:1/x": "must be host:port",
		"a:": "must be host:port", "a:1?x": "must be host:port", "::1:80": "must be host:port", "a b:1": "without blanks", "a:1\n": "without blanks", "a\x00:1": "without blanks",
		"a\u202e:1": "without blanks", "a\u00a0:1": "without blanks", "\xff:1": "without blanks", long + "a": "at most 256 bytes",
		"ftp://a": "must be host:port", "javascript://a/alert(1)": "must be host:port", "javascript:alert(1)": "must be host:port", "https://a:0": "must be host:port",
		"https://a<b>": "must be host:port", `http://"a"`: "must be host:port", "http://a;b:1": "must be host:port",
		":8080": "must name the host", "0.0.0.0:8080": "must name the host", "[::]:8080": "must name the host", "https://": "must name the host", "http:///x": "must name the host",
		"http://u:secret@a": "must have no user", "u@a:1": "must have no user",
	} {
		require.Contains(t, CheckAdvertise(s), rule, "%q", s)
	}
}

func TestCheckZone(t *testing.T) {
	for _, s := range []string{"", "eu-west-1a", "Zürich/3", strings.Repeat("z", maxZone)} {
		require.Empty(t, CheckZone(s), s)
	}
	for _, s := range []string{strings.Repeat("z", maxZone+1), "rack 7", "a\tb", "\x1b[2J", "\xff", "\u202ea", "\u2028"} {
		require.NotEmpty(t, CheckZone(s), "%q", s)
	}
}

// A member that does not know the fields reads the Hello, so members that know them must read it, too.
func TestHelloWithAnyFormOfDescriptionIsAccepted(t *testing.T) {
	for value, want := range map[string]string{
		`"a:1"`: "a:1", `"a"`: "", `"a:1\n"`: "", `"\u0000"`: "", `"\ud800:1"`: "", `"javascript:alert(1)"`: "", `7`: "", `true`: "", `null`: "", `["a:1"]`: "", `{"a":1}`: "",
		`"` + strings.Repeat("a", maxAdvertise) + `:1"`: "",
	} {
		r, err := testCodec.Decode([]byte(`{"neli":1,"group":"g","log":"log","kind":"hello","process":"x","session":1,"read":1,"seq":1,"hello":{"roles":3,"advertise":` + value + `}}`))
		require.NoError(t, err, value)
		require.Equal(t, &Announcement{Roles: 3, Advertise: want}, r.Hello, value)
	}
	for value, want := range map[string]Announcement{`0`: {Caps: true}, `7`: {Caps: true, MaxRoles: 7}, `1000000`: {Caps: true, MaxRoles: MaxRoles}, `1000001`: {}, `-1`: {},
		`"7"`: {}, `7.5`: {}, `1e99`: {}, `null`: {}, `[7]`: {}} {
		r, err := testCodec.Decode([]byte(`{"neli":1,"group":"g","log":"log","kind":"hello","process":"x","session":1,"read":1,"seq":1,"hello":{"roles":0,"max_roles":` + value + `}}`))
		require.NoError(t, err, value)
		require.Equal(t, &want, r.Hello, value)
	}
	for value, want := range map[string]string{`"a"`: "a", `"a b"`: "", `"<\u0007>"`: "", `[]`: "", `"` + strings.Repeat("a", maxZone+1) + `"`: ""} {
		r, err := testCodec.Decode([]byte(`{"neli":1,"group":"g","log":"log","kind":"hello","process":"x","session":1,"read":1,"seq":1,"hello":{"roles":3,"zone":` + value + `}}`))
		require.NoError(t, err, value)
		require.Equal(t, &Announcement{Roles: 3, Zone: want}, r.Hello, value)
	}
}

func TestLongestHelloFitsARecord(t *testing.T) {
	wants := make([]int, maxWants)
	for i := range wants {
		wants[i] = i
	}
	r := Record{Kind: Hello, Session: Session{strings.Repeat("x", maxProcess), 1}, Name: strings.Repeat("<", maxName), Read: 1 << 60, Seq: 1 << 60, Longest: Unsaid,
		Hello: &Announcement{Roles: MaxRoles, Wants: wants, Period: time.Hour, Advertise: "http://a/" + strings.Repeat("&", maxAdvertise-9), Zone: strings.Repeat("<", maxZone), Prepares: &Prepares{MaxPrepares, MaxPrepare, true}}}
	c := Codec{Group: strings.Repeat("<", 255), Log: strings.Repeat("x", 64)}
	value := c.Encode(&r)
	require.LessOrEqual(t, len(value), MaxRecord)
	got, err := c.Decode(value)
	require.NoError(t, err)
	require.Equal(t, &r, got)
}
