package lease

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Members that do not know these fields read the record, so members that know them must read it, too.
func TestRecordWithAnyFormOfOfferIsAccepted(t *testing.T) {
	const ping, pong, hello = 16, 17, 15
	many := "0-" + strings.Repeat("9", 4)
	for _, c := range []struct {
		example int
		field   string
		values  []string
	}{
		{hello, "prepares", []string{`null`, `7`, `"x"`, `[]`, `{}`, `{"most":0,"for":1}`, `{"most":1001,"for":1}`, `{"most":1,"for":0}`, `{"most":1,"for":600000000001}`,
			`{"most":"1","for":1}`, `{"most":99999999999999999999,"for":1}`}},
		{ping, "offer", []string{`null`, `7`, `"x"`, `[]`, `{}`, `{"n":0}`, `{"n":-1}`, `{"n":9007199254740993}`, `{"n":1,"roles":"2,1"}`, `{"n":1,"roles":7}`,
			`{"n":1,"roles":"0-3999,5000"}`, `{"n":1,"roles":"` + many + `"}`, `{"n":1,"urgent":1}`}},
		{pong, "prepared", []string{`null`, `7`, `"x"`, `[]`, `{}`, `{"n":1}`, `{"of":1}`, `{"n":1,"of":9007199254740993}`, `{"n":9007199254740993,"of":1}`, `{"n":1,"of":1,"ready":"x"}`,
			`{"n":1,"of":1,"running":"0-1999","ready":"2000-3999","failed":"4000"}`, `{"n":1,"of":1,"failed":[5]}`}},
	} {
		for _, value := range c.values {
			want := examples()[c.example]
			want.Offer, want.Prepared = nil, nil
			if want.Hello != nil {
				want.Hello.Prepares = nil
			}
			whole := string(testCodec.Encode(&want))
			if c.example == hello {
				whole = strings.TrimSuffix(whole, "}}") + `,"` + c.field + `":` + value + `}}`
			} else {
				whole = strings.TrimSuffix(whole, "}") + `,"` + c.field + `":` + value + `}`
			}
			got, err := testCodec.Decode([]byte(whole))
			require.NoError(t, err, "%s", whole)
			require.Equal(t, &want, got, "%s", whole)
		}
	}
}

// A field that only a Ping, a Pong or a Hello has is ignored in other records.
func TestOffersAreFieldsOfPings(t *testing.T) {
	for i, r := range examples() {
		whole := strings.TrimSuffix(string(testCodec.Encode(&r)), "}")
		want := r
		if r.Kind != Ping {
			whole += `,"offer":{"n":9,"roles":"1"}`
		}
		if r.Kind != Pong {
			whole += `,"prepared":{"n":9,"of":9,"ready":"1"}`
		}
		got, err := testCodec.Decode([]byte(whole + "}"))
		require.NoError(t, err, "%d", i)
		require.Equal(t, &want, got, "%d", i)
	}
}

func TestLongestOfferFitsARecord(t *testing.T) {
	var roles []int32
	for i := range int32(MaxOffered) {
		roles = append(roles, i*(MaxRoles/MaxOffered))
	}
	c := Codec{Group: strings.Repeat("<", 255), Log: strings.Repeat("x", 64)}
	x := Session{strings.Repeat("x", maxProcess), 1 << 60}
	for _, r := range []Record{
		{Kind: Ping, Session: x, Name: strings.Repeat("<", maxName), Read: 1 << 60, Seq: 1 << 60, To: x.Process, Offer: &Offer{maxOffers, roles, true}},
		{Kind: Pong, Session: x, Name: strings.Repeat("<", maxName), Read: 1 << 60, Seq: 1 << 60, To: x.Process, Hello: &Announcement{},
			Prepared: &Prepared{N: maxOffers, Of: maxOffers, Running: roles[:1000], Ready: roles[1000:3000], Failed: roles[3000:]}},
	} {
		value := c.Encode(&r)
		require.LessOrEqual(t, len(value), MaxRecord)
		got, err := c.Decode(value)
		require.NoError(t, err)
		require.Equal(t, &r, got)
	}
}
