package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/proxy"
	"github.com/goneli/neli/lab/witness"
)

// Three brokers, replication factor 3: a leader is cut off from one of them, and brokers crash or restart under
// their leaders. These cases run one after another, since a fault of a broker affects all.

func TestThreeBrokers(t *testing.T) {
	e := newEnv(t, 3, 3, nil)
	admin := newAdmin(t, e.bootstrap)
	t.Run("cut off from", func(t *testing.T) {
		t.Run("the group coordinator only", func(t *testing.T) {
			t.Parallel()
			cutOffFromCoordinator(t, e, admin)
		})
		t.Run("the partition leader only, open", func(t *testing.T) {
			t.Parallel()
			cutOffFromPartitionLeader(t, e, admin, neli.NominationOpen)
		})
		t.Run("the partition leader only, assigned", func(t *testing.T) {
			t.Parallel()
			cutOffFromPartitionLeader(t, e, admin, neli.NominationAssigned)
		})
	})
	t.Run("brokers restarted and killed", func(t *testing.T) { brokersFail(t, e, admin) })
}

// partitionLeader is the broker that leads the partition, in cases that fix this. Another broker then
// coordinates the group.
const partitionLeader = int32(1)

// placed prepares an election whose only partition is led by one broker and whose
// group is coordinated by another, and returns the latter. T is so long that three brokers on a busy machine do not end a
// term, and longer than a hand-over may take.
func placed(t *testing.T, e *env, a admin, nomination neli.Nomination) (*election, int) {
	t.Helper()
	coordinator := int32(0)
	el := exclusive(t, e, nomination, 5*time.Second, func(c *contenderParams) {
		c.Group, coordinator = a.groupElsewhere(t, slug(t.Name()), partitionLeader)
		c.Topic = c.Group
	})
	a.createTopic(t, el.params.Topic, partitionLeader)
	return el, int(coordinator)
}

// Only nomination goes through the coordinator. A leader that cannot reach it loses its session, and the group
// nominates another process. The lease continues nevertheless, since nothing is wrong with the leader.
func cutOffFromCoordinator(t *testing.T, e *env, a admin) {
	p := e.proxy(t)
	el, coordinator := placed(t, e, a, neli.NominationAssigned)
	el.start("first", through(p))
	leader := el.leader(0, firstLeader)
	second := el.follow("second")[0]
	require.NoError(t, p.CutOff(proxy.Both, coordinator))
	cut := witness.Now()
	second.logs(fmt.Sprintf("%s group=%s name=%s partitions=[0]", assignedLine, el.params.Group, second), 1, e.session+patience)
	waitPast(t, max(witness.Now(), cut+e.session)+2*el.params.Timeout)
	if !assert.Empty(t, leader.events("revoked", "fenced"), "the lease does not rest on the session") {
		t.Logf("terms: %v", el.terms(0, 0))
	}
	el.soleTerm(leader)

	// Back in the group it learns that another is nominated, and hands over.
	require.NoError(t, p.Restore())
	next := el.leader(0, patience, leader.member)
	assert.Equal(t, second, next.member)
	assert.Equal(t, "unassigned", leader.awaits("revoked", patience).Reason)
	assert.Empty(t, leader.events("fenced"))
	for _, v := range el.vacancies() {
		assert.Less(t, v.Length(), 100*time.Millisecond+busyMachine, "handed over in order")
	}
}

// A leader that cannot reach the partition's broker can neither beat nor read. It lapses, and a process that can
// reach the broker leads: at once if any process may claim; with a group only after the nominated process, which
// the group believes to be healthy, has made room.
func cutOffFromPartitionLeader(t *testing.T, e *env, a admin, nomination neli.Nomination) {
	p := e.proxy(t)
	el, _ := placed(t, e, a, nomination)
	el.start("first", through(p))
	old := el.leader(0, firstLeader)
	el.follow("second", "third")
	require.NoError(t, p.CutOff(proxy.Both, int(partitionLeader)))
	cut := witness.Now()
	old.awaits("fenced", el.params.Timeout+patience)
	if nomination == neli.NominationAssigned {
		el.bound += giveWay
	}
	next := el.leader(0, el.bound+patience, old.member)
	t.Logf("cut off → next leader: %v", (next.since - cut).Round(time.Millisecond))
	waitPast(t, cut+2*max(el.params.Timeout, e.session))
	require.NoError(t, p.Restore())
	old.readsMore(5, patience)
	el.neverAgain(old, cut+el.params.Timeout+busyMachine)
	el.leader(0, patience)
}

// giveWay is how long a nominated process tries to claim without success.
const giveWay = 15 * time.Second

// underBrokers prepares elections with T = 5 s and three partitions, one for each
// way of nomination, and returns them when all roles are led and spread.
func underBrokers(t *testing.T, e *env) []*election {
	t.Helper()
	var all []*election
	for _, nomination := range []neli.Nomination{neli.NominationOpen, neli.NominationAssigned} {
		el := newElection(t, e, contenderParams{
			Nomination: nomination, Timeout: 5 * time.Second, Roles: 3, Partitions: 3,
		})
		el.start("first")
		all = append(all, el)
	}
	for _, el := range all {
		el.allLed(firstLeader)
		el.follow("second", "third")
	}
	for _, el := range all {
		if el.grouped() {
			waitUntil(t, patience, "each member leads a role", func() bool {
				for _, m := range el.members {
					if len(el.rolesOf(m)) != 1 {
						return false
					}
				}
				return true
			})
		}
	}
	return all
}

// snapshot returns the tokens under which all roles are led.
func (e *election) snapshot() map[int]int64 {
	e.t.Helper()
	out := map[int]int64{}
	for role := range e.params.Roles {
		out[role] = e.leader(role, firstLeader).token
	}
	return out
}

// settledAgain waits until all roles are led and every member reads, asserts that no
// role was vacant for longer than the bound, and logs how many of the former terms
// are over.
func (e *election) settledAgain(what string, before map[int]int64, since, bound time.Duration) {
	e.t.Helper()
	e.allLed(time.Minute)
	for _, m := range e.members {
		m.readsMore(6, time.Minute) // two beats of each partition
	}
	lost := 0
	for role, token := range e.snapshot() {
		assert.GreaterOrEqual(e.t, token, before[role])
		if before[role] != token {
			lost++
		}
	}
	var worst time.Duration
	for _, v := range e.vacancies() {
		if v.From > since {
			worst = max(worst, v.Length())
		}
	}
	assert.LessOrEqual(e.t, worst, bound, "%s, %v: longest vacancy", what, e.params.Nomination)
	e.t.Logf("%s, %v, T = %v: %d of %d terms lost; longest vacancy → %v", what, e.params.Nomination,
		e.params.Timeout, lost, len(before), worst.Round(time.Millisecond))
}

// A planned restart of a broker hands partitions over cleanly. With T = 5 s it should cost no term. The test reports
// the number of lost terms without asserting it, since brokers promise nothing about it. But no loss may cost more than
// a crash of the leader, if clients already try again to reach the broker that was away before: the next one that stops
// may hand its partitions to that one. A crashed broker stalls every partition that it replicates until it has left the
// in-sync replicas. That takes broker.session.timeout.ms, 9 s, so terms of 5 s lapse. Then a process must claim, as
// after a crash of the leader, once the clients have found the partition's new leader.
func brokersFail(t *testing.T, e *env, a admin) {
	all := underBrokers(t, e)
	crash := func(el *election) time.Duration {
		if el.grouped() {
			return assignedBound(el.params.Timeout, stockSession)
		}
		return openBound(el.params.Timeout)
	}
	remember := func() ([]map[int]int64, time.Duration) {
		var tokens []map[int]int64
		for _, el := range all {
			tokens = append(tokens, el.snapshot())
		}
		return tokens, witness.Now()
	}

	before, began := remember()
	for _, b := range e.cluster.Brokers() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.NoError(t, b.Restart(ctx))
		cancel()
		for _, el := range all {
			a.inSync(t, el.params.Topic, 3)
		}
	}
	for i, el := range all {
		el.settledAgain("rolling restart of three brokers", before[i], began, reconnecting+crash(el))
	}

	before, began = remember()
	e.cluster.Brokers()[2].Kill()
	for _, el := range all {
		a.inSync(t, el.params.Topic, 2)
	}
	t.Logf("the killed broker has left the in-sync replicas after %v", (witness.Now() - began).Round(time.Millisecond))
	for i, el := range all {
		el.settledAgain("one of three brokers killed", before[i], began, brokerSession+reconnecting+crash(el))
	}
}

// Kafka's own times, as they are by default: when a broker that is silent is out of
// the in-sync replicas, when a member of a group is out of it (the library's setting),
// and the longest that a client waits before it tries a broker again.
const (
	brokerSession = 9 * time.Second
	stockSession  = 6 * time.Second
	reconnecting  = 10 * time.Second
)

// A broker that stands still for longer than T ends every term at once. That says nothing about any member, so no
// member may claim everything. When the broker is back, every role is led again within two T. The clients
// take some seconds of that, whatever T is, to give up the requests that they had sent to the broker before.
func TestBrokerStandsStill(t *testing.T) {
	e := newEnv(t, 1, 0, nil)
	e.own(t)
	el := newElection(t, e, contenderParams{Nomination: neli.NominationOpen, Timeout: 5 * time.Second, Roles: 100, Partitions: 4})
	el.start("first")
	el.allLed(firstLeader)
	el.follow("second", "third", "fourth", "fifth")
	timeout, broker := el.params.Timeout, e.cluster.Brokers()[0]

	require.NoError(t, broker.Suspend())
	waitPast(t, witness.Now()+3*timeout)
	for _, m := range el.members {
		assert.Empty(t, el.rolesOf(m), "%s leads without a broker", m)
	}
	back := witness.Now()
	require.NoError(t, broker.Resume())
	el.allLed(firstLeader)
	took := witness.Now() - back
	assert.LessOrEqual(t, took, 2*timeout+busyMachine)
	el.bound = 5*timeout + busyMachine
	t.Logf("all of %d roles are led %v after the broker's return", el.params.Roles, took.Round(time.Millisecond))
}

// admin asks a cluster for facts that elections do not show.
type admin struct{ *kgo.Client }

func newAdmin(t *testing.T, bootstrap string) admin {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.MetadataMinAge(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return admin{client}
}

// groupElsewhere returns the name of a group whose coordinator is not this broker,
// and its coordinator.
func (a admin) groupElsewhere(t *testing.T, prefix string, broker int32) (string, int32) {
	t.Helper()
	for range 100 {
		group := prefix + "-" + fresh()
		if at := a.coordinator(t, group); at != broker {
			return group, at
		}
	}
	t.Fatalf("broker %d coordinates all groups", broker)
	return "", 0
}

// coordinator returns the broker that coordinates a group. The first request makes Kafka create the topic for
// groups, which takes a while.
func (a admin) coordinator(t *testing.T, group string) int32 {
	t.Helper()
	var at int32
	waitUntil(t, patience, "group "+group+" has a coordinator", func() bool {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey = group
		req.CoordinatorKeys = []string{group}
		for _, shard := range a.RequestSharded(t.Context(), req) {
			resp, ok := shard.Resp.(*kmsg.FindCoordinatorResponse)
			if shard.Err != nil || !ok {
				continue
			}
			for _, c := range resp.Coordinators {
				if c.ErrorCode == 0 {
					at = c.NodeID
					return true
				}
			}
			if len(resp.Coordinators) == 0 && resp.ErrorCode == 0 {
				at = resp.NodeID
				return true
			}
		}
		return false
	})
	return at
}

// createTopic makes a topic of one partition that the given broker leads, with the
// settings that the library itself would give it.
func (a admin) createTopic(t *testing.T, topic string, leader int32) {
	t.Helper()
	replicas := []int32{leader}
	for id := int32(1); id <= 3; id++ {
		if id != leader {
			replicas = append(replicas, id)
		}
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, -1, -1
	ra := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	ra.Partition, ra.Replicas = 0, replicas
	rt.ReplicaAssignment = append(rt.ReplicaAssignment, ra)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), a)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
}

// inSync waits until every partition of a topic has n replicas in sync.
func (a admin) inSync(t *testing.T, topic string, n int) {
	t.Helper()
	waitUntil(t, time.Minute, fmt.Sprintf("%d replicas of %s are in sync", n, topic), func() bool {
		partitions, _ := a.partitions(t, topic)
		return len(partitions) > 0 && !slices.ContainsFunc(partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return len(p.ISR) != n })
	})
}

// partitions returns a topic's partitions, none if it does not exist, and whether a broker has answered.
func (a admin) partitions(t *testing.T, topic string) (found []kmsg.MetadataResponseTopicPartition, answered bool) {
	t.Helper()
	req, of := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	of.Topic = &topic
	req.Topics = append(req.Topics, of)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	resp, err := req.RequestWith(ctx, a)
	if err != nil || len(resp.Topics) == 0 {
		return nil, false
	}
	return resp.Topics[0].Partitions, true
}
