package offer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/lease"
)

func newOffers() *Offers { return NewOffers(testWait, testT) }

var fromB = From{Process: "b"}

// name offers some roles to b.
func (os *Offers) name(most int, roles ...int32) {
	for _, local := range roles {
		os.Name("b", prepares(most), Place{Local: local})
	}
}

// sent returns the roles of the only offer that is due; nil: none is.
func sent(t *testing.T, os *Offers, now clock.Instant) *lease.Offer {
	t.Helper()
	out := os.Sends(false, now)
	if len(out) == 0 {
		return nil
	}
	require.Len(t, out, 1)
	return &out[0].Offer
}

func (os *Offers) standing(local int32, now clock.Instant) Standing {
	return os.Standing("b", Place{Local: local}, at(0), now)
}

func (os *Offers) state(n, of uint64, now clock.Instant, running, ready, failed []int32) {
	os.Answered(fromB, &lease.Prepared{N: n, Of: of, Running: running, Ready: ready, Failed: failed}, now)
}

func TestOffersAreSets(t *testing.T) {
	os := newOffers()
	require.Nil(t, sent(t, os, at(0)))
	os.name(9, 5, 3)
	require.Equal(t, []Offer{{To: fromB, Offer: lease.Offer{N: 1, Roles: []int32{3, 5}, Urgent: true}}}, os.Sends(true, at(0)))
	os.name(9, 4)
	require.Nil(t, sent(t, os, at(gather-1)), "what changes together is said together")
	require.Equal(t, at(gather).Mono, os.Due())
	require.Equal(t, &lease.Offer{N: 2, Roles: []int32{3, 4, 5}}, sent(t, os, at(gather)))
	os.CallOff("b", Place{Local: 3})
	require.Equal(t, &lease.Offer{N: 3, Roles: []int32{4, 5}}, sent(t, os, at(time.Second)), "what is not named is called off")
	require.Nil(t, sent(t, os, at(time.Second+testT/4-1)))
	require.Equal(t, at(time.Second+testT/4).Mono, os.Due())
	require.Equal(t, &lease.Offer{N: 4, Roles: []int32{4, 5}}, sent(t, os, at(time.Second+testT/4)), "it is repeated")
}

func TestEmptyOffersAreRepeatedTwice(t *testing.T) {
	os := newOffers()
	os.name(9, 3)
	sent(t, os, at(0))
	os.CallOff("b", Place{Local: 3})
	require.Equal(t, &lease.Offer{N: 2}, sent(t, os, at(time.Second)))
	require.Equal(t, &lease.Offer{N: 3}, sent(t, os, at(time.Second+testT/4)))
	require.Equal(t, &lease.Offer{N: 4}, sent(t, os, at(time.Second+testT/2)))
	require.Nil(t, sent(t, os, at(time.Minute)))
	require.Equal(t, clock.Mono(clock.Never), os.Due())
	require.Empty(t, os.to)
	os.name(9, 7)
	require.Equal(t, &lease.Offer{N: 5, Roles: []int32{7}}, sent(t, os, at(time.Hour)), "numbers never begin anew")
}

// A role leaves the offer when its Release is read back, not when it is sent. Otherwise a member that reads the next
// offer first would let go of the role.
func TestRolesAreOfferedUntilTheirReleaseIsReadBack(t *testing.T) {
	os := newOffers()
	os.name(9, 3, 4)
	sent(t, os, at(0))
	os.Asked("b", Place{Local: 3})
	require.Equal(t, []int32{3, 4}, sent(t, os, at(testT/4)).Roles)
	os.Given("b", Place{Local: 3})
	require.Equal(t, []int32{4}, os.Named("b", 0))
	require.Nil(t, sent(t, os, at(testT/2-1)), "the member reads the Release")
	require.Equal(t, []int32{4}, sent(t, os, at(testT/2)).Roles)
}

func TestOffersNameAWindowOfRoles(t *testing.T) {
	os := newOffers()
	os.name(1, 9, 8, 7, 6, 5, 4, 3)
	require.Equal(t, []int32{3, 4, 5, 6}, sent(t, os, at(0)).Roles, "the lowest 4P")
	os.name(1, 2)
	require.Nil(t, sent(t, os, at(time.Second)), "there is no room")
	os.state(1, 1, at(time.Second), []int32{6}, []int32{3, 4}, nil)
	require.Nil(t, sent(t, os, at(time.Second)), "no room yet")
	os.Given("b", Place{Local: 3})
	require.Nil(t, sent(t, os, at(time.Second)), "it has two to begin with")
	os.state(2, 1, at(time.Second), nil, []int32{4, 6}, nil)
	require.Equal(t, []int32{2, 4, 5, 6}, sent(t, os, at(time.Second)).Roles, "it may soon have nothing to begin with")
	os.CallOff("b", Place{Local: 9})
	require.Nil(t, sent(t, os, at(time.Second+gather)), "it was not named")
	os.CallOff("b", Place{Local: 2})
	require.Equal(t, []int32{4, 5, 6, 7}, sent(t, os, at(time.Second+gather)).Roles)
}

func TestDecidedRoleIsNoLongerOffered(t *testing.T) {
	os := newOffers()
	os.name(1, 1, 2, 3, 4, 5)
	sent(t, os, at(0))
	require.Equal(t, Standing{}, os.Waiting("b", 0, at(0)))
	os.state(1, 1, at(0), nil, []int32{1}, nil)
	require.Equal(t, Standing{Answered: true}, os.Waiting("b", 0, at(0)))
	os.Asked("b", Place{Local: 1})
	os.Asked("b", Place{Local: 5})
	require.Equal(t, []int32{2, 3, 4}, os.Named("b", 0), "role 1 is decided")
	os.Given("b", Place{Local: 1})
	require.Equal(t, []int32{2, 3, 4}, sent(t, os, at(testT/4)).Roles)
}

func TestReviewRemovesRolesNoLongerOffered(t *testing.T) {
	os := newOffers()
	os.name(9, 1, 2, 3)
	sent(t, os, at(0))
	os.Review(func(to From, local int32) (offered, given bool) {
		require.Equal(t, fromB, to)
		return local != 1, true
	})
	require.Nil(t, sent(t, os, at(time.Second)), "the member knows that it was given role 1")
	os.Review(func(_ From, local int32) (offered, given bool) { return local == 3, false })
	require.Equal(t, []int32{3}, sent(t, os, at(time.Second)).Roles)
}

func TestOfferWindowIsPerMember(t *testing.T) {
	os := newOffers()
	for local := range int32(3) {
		os.Name("b", prepares(1), Place{Shard: 0, Local: local})
		os.Name("b", prepares(1), Place{Shard: 1, Local: local})
		os.Name("c", prepares(1), Place{Shard: 0, Local: local + 9})
	}
	require.Equal(t, []Offer{{To: From{"b", 0}, Offer: lease.Offer{N: 1, Roles: []int32{0, 1, 2}}}, {To: From{"b", 1}, Offer: lease.Offer{N: 2, Roles: []int32{0}}},
		{To: From{"c", 0}, Offer: lease.Offer{N: 3, Roles: []int32{9, 10, 11}}}}, os.Sends(false, at(0)))
}

func TestStatesReportAMembersProgress(t *testing.T) {
	os := newOffers()
	os.name(9, 1, 2, 3, 4)
	sent(t, os, at(0))
	require.Equal(t, Standing{}, os.standing(1, at(0)))
	os.state(7, 1, at(0), []int32{2}, []int32{3}, []int32{4, 99})
	require.Equal(t, Standing{Answered: true}, os.standing(1, at(0)), "it waits")
	require.Equal(t, Standing{Answered: true}, os.standing(2, at(0)))
	require.Equal(t, Standing{Answered: true, Ready: true}, os.standing(3, at(0)))
	require.Equal(t, Standing{Answered: true, Failed: true}, os.standing(4, at(0)))
	os.state(6, 1, at(0), nil, []int32{2}, nil)
	require.False(t, os.standing(2, at(0)).Ready, "a later state was read before")

	os.name(9, 5)
	os.state(8, 1, at(0), nil, []int32{5}, nil)
	require.Equal(t, Standing{}, os.standing(5, at(0)), "no offer has named it")
	sent(t, os, at(gather))
	os.state(9, 1, at(0), nil, []int32{5}, nil)
	require.Equal(t, Standing{}, os.standing(5, at(0)), "this answers an offer without it")
	os.Answered(From{"c", 0}, &lease.Prepared{N: 10, Of: 2, Ready: []int32{5}}, at(0))
	os.Answered(From{"b", 1}, &lease.Prepared{N: 10, Of: 2, Ready: []int32{5}}, at(0))
	require.Equal(t, Standing{}, os.standing(5, at(0)), "another one's")
	os.state(10, 2, at(0), nil, []int32{5}, nil)
	require.Equal(t, Standing{Answered: true, Ready: true}, os.standing(5, at(0)))
	require.Equal(t, Standing{}, os.standing(77, at(0)))
}

func TestStandingsChangeWithTime(t *testing.T) {
	const longest = testFor + testWait
	os := newOffers()
	os.name(9, 1, 2)
	sent(t, os, at(0))
	place := Place{Local: 1}
	require.Equal(t, at(testWait).Mono, os.Changes("b", place, at(0)))
	require.False(t, os.standing(1, at(testWait-1)).Silent)
	require.True(t, os.standing(1, at(testWait)).Silent)
	os.state(1, 1, at(testWait), []int32{1}, nil, nil)
	require.Equal(t, Standing{Answered: true}, os.standing(1, at(testWait)))
	require.Equal(t, at(testWait+longest).Mono, os.Changes("b", place, at(0)), "its clock begins when it runs")
	require.False(t, os.standing(1, at(testWait+longest-1)).Late)
	require.True(t, os.standing(1, at(testWait+longest)).Late)
	require.False(t, os.standing(2, at(longest-1)).Busy)
	require.True(t, os.standing(2, at(longest)).Busy)
	sent(t, os, at(testT/4))
	require.True(t, os.standing(1, at(testT/4+testWait)).Silent, "each repetition asks anew")

	os.state(2, 1, at(2*longest), nil, []int32{1}, nil)
	require.Equal(t, Standing{Answered: true, Ready: true}, os.standing(1, at(9*longest)))
}

func TestFailedRoleRestsForThatMember(t *testing.T) {
	os := newOffers()
	os.Failed("b", Place{Local: 3}, at(0))
	os.Failed("c", Place{Local: 3}, at(time.Second))
	require.True(t, os.Rests("b", Place{Local: 3}, at(rest-1)))
	require.False(t, os.Rests("b", Place{Local: 3}, at(rest)))
	require.False(t, os.Rests("b", Place{Local: 4}, at(0)), "one role that fails does not stop others")
	require.False(t, os.Rests("d", Place{Local: 3}, at(0)), "nor other members")
	require.True(t, os.RestsAnywhere(Place{Local: 3}, at(rest)))
	require.False(t, os.RestsAnywhere(Place{Local: 3}, at(rest+time.Second)))
	require.False(t, os.RestsAnywhere(Place{Local: 4}, at(0)))
	require.True(t, os.AnyRests(at(rest)))
	require.False(t, os.AnyRests(at(rest+time.Second)))
	os.Failed("d", Place{Local: 3}, at(rest))
	require.Len(t, os.fail, 2, "what is over is forgotten")
}

func TestConditionsOfAWarmHandover(t *testing.T) {
	ok := Handing{Standing: Standing{Answered: true}, Takes: true, Another: true, Patient: true}
	for _, c := range []struct {
		name         string
		change       func(h *Handing)
		keeps, gives handover.Conditions
	}{
		{"it is being prepared", func(*Handing) {}, handover.Conditions{}, handover.Conditions{Another: true}},
		{"it is ready", func(h *Handing) { h.Ready = true }, handover.Conditions{Ready: true}, handover.Conditions{Ready: true, Another: true}},
		{"the member has gone", func(h *Handing) { h.Ready, h.Takes = true, false }, handover.Conditions{Refused: true}, handover.Conditions{Refused: true, Another: true}},
		{"the member has failed", func(h *Handing) { h.Failed = true }, handover.Conditions{Refused: true}, handover.Conditions{Refused: true, Another: true}},
		{"and there is no other", func(h *Handing) { h.Failed, h.Another = true, false }, handover.Conditions{Refused: true}, handover.Conditions{Refused: true}},
		{"the member is silent", func(h *Handing) { h.Ready, h.Silent = true, true }, handover.Conditions{Over: true}, handover.Conditions{Over: true, Another: true}},
		{"it takes too long", func(h *Handing) { h.Late = true }, handover.Conditions{Over: true}, handover.Conditions{Another: true}},
		{"it waits for too long", func(h *Handing) { h.Busy = true }, handover.Conditions{Over: true}, handover.Conditions{Another: true}},
		{"half of the time is over", func(h *Handing) { h.Patient = false }, handover.Conditions{}, handover.Conditions{Over: true}},
		{"and it is ready", func(h *Handing) { h.Ready, h.Patient = true, false }, handover.Conditions{Ready: true}, handover.Conditions{Ready: true, Over: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := ok
			c.change(&h)
			require.Equal(t, c.gives, h.Conditions())
			h.Keeps = true
			require.Equal(t, c.keeps, h.Conditions())
		})
	}
	require.True(t, Patient(at(0), 10*time.Second, at(5*time.Second-1)))
	require.False(t, Patient(at(0), 10*time.Second, at(5*time.Second)))
}

func TestFailedHandoverCoolsAMemberOrRole(t *testing.T) {
	for _, c := range []struct {
		h            Handing
		member, role bool
	}{
		{Handing{Takes: true, Standing: Standing{Failed: true}}, false, true},
		{Handing{Takes: true, Standing: Standing{Late: true}}, false, true},
		{Handing{Takes: true, Standing: Standing{Busy: true}}, false, false},
		{Handing{Takes: true, Standing: Standing{Silent: true, Late: true}}, true, false},
		{Handing{Standing: Standing{Failed: true}}, true, false},
	} {
		member, role := c.h.Cools()
		require.Equal(t, []bool{c.member, c.role}, []bool{member, role}, c.h)
	}
}
