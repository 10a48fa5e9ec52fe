package integration

import (
	"fmt"
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

// Three brokers, replication factor 3: with Assigned nomination a leader is cut off from one of them. lab/chaos has other
// faults of brokers.
func TestThreeBrokers(t *testing.T) {
	e := newEnv(t, 3, 3, nil)
	admin := newAdmin(t, e.bootstrap)
	t.Run("cut off from", func(t *testing.T) {
		t.Run("the group coordinator only", func(t *testing.T) {
			t.Parallel()
			cutOffFromCoordinator(t, e, admin)
		})
		t.Run("the partition leader only", func(t *testing.T) {
			t.Parallel()
			cutOffFromPartitionLeader(t, e, admin)
		})
	})
}

// partitionLeader is the broker that leads the partition in cases that choose it. Another broker
// then coordinates the group.
const partitionLeader = int32(1)

// placed prepares an election whose only partition partitionLeader leads, and returns it with the broker that coordinates
// its group. T is so long that three brokers on a busy machine do not end a term, and longer than a hand-over may take.
func placed(t *testing.T, e *env, a admin) (*election, int) {
	t.Helper()
	coordinator := int32(0)
	el := exclusive(t, e, neli.NominationAssigned, 5*time.Second, func(c *contenderParams) {
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
	el, coordinator := placed(t, e, a)
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

// A leader that cannot reach the partition's broker can neither beat nor read. It lapses, and a process that can reach
// the broker leads once the nominated process, which the group believes to be healthy, has made room.
func cutOffFromPartitionLeader(t *testing.T, e *env, a admin) {
	p := e.proxy(t)
	el, _ := placed(t, e, a)
	el.start("first", through(p))
	old := el.leader(0, firstLeader)
	el.follow("second", "third")
	require.NoError(t, p.CutOff(proxy.Both, int(partitionLeader)))
	cut := witness.Now()
	old.awaits("fenced", el.params.Timeout+patience)
	el.bound += giveWay
	next := el.leader(0, el.bound+patience, old.member)
	t.Logf("cut off → next leader: %v", (next.since - cut).Round(time.Millisecond))
	waitPast(t, cut+2*max(el.params.Timeout, e.session))
	require.NoError(t, p.Restore())
	old.readsMore(5, patience)
	el.neverAgain(old, cut+el.params.Timeout+busyMachine)
	el.leader(0, patience)
}

// giveWay is how long a nominated process tries to claim without success, before it gives way.
const giveWay = 15 * time.Second

// stockSession is the library's session timeout of a member of a group.
const stockSession = 6 * time.Second

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

// groupElsewhere returns the name of a group whose coordinator is not this broker, and its coordinator.
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

// createTopic makes a topic of one partition that the given broker leads, with the brokers' default settings.
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
