package nelitest_test

import (
	"log"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// The programs of goNELI's README run here as they are, but for the Provider, the logger, and the lines that end with
// "// added".

func TestGoNELIsBasicProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, pieces := nelitest.NewBroker(nelitest.Options{}), 0
		program := func() {
			neli, err := New(Config{
				KafkaConfig: KafkaConfigMap{
					"bootstrap.servers": "localhost:9092",
				},
				LeaderGroupID: "my-app-name.group",
				LeaderTopic:   "my-app-name.topic",
				Provider:      broker.Provider("a"), // added
			})
			if err != nil {
				panic(err)
			}
			p, _ := neli.Background(func() {
				pieces++ // added
				time.Sleep(100 * time.Millisecond)
			})
			time.AfterFunc(time.Minute, func() { neli.Close() }) // added
			defer neli.Await()                                   // added
			panic(p.Await())
		}
		require.PanicsWithValue(t, ErrClosed, program)
		require.InDelta(t, 550, pieces, 50)
	})
}

func TestGoNELIsFullProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		var pieces, elected, fenced atomic.Int64
		config := Config{
			KafkaConfig: KafkaConfigMap{
				"bootstrap.servers": "localhost:9092",
			},
			LeaderGroupID: "my-app-name.group",
			LeaderTopic:   "my-app-name.topic",
			Provider:      broker.Provider("a"), // added
		}
		barrier := func(e Event) {
			switch e.(type) {
			case LeaderAcquired:
				log.Printf("Received event: leader elected")
				elected.Add(1) // added
			case LeaderRevoked:
				log.Printf("Received event: leader revoked")
			case LeaderFenced:
				log.Printf("Received event: leader fenced")
				fenced.Add(1) // added
			}
		}
		neli, err := New(config, barrier)
		if err != nil {
			panic(err)
		}
		stop := make(chan struct{}) // added
		go func() {
			defer neli.Close()

			for {
				isLeader, err := neli.Pulse(10 * time.Millisecond)
				if err != nil {
					panic(err)
				}

				if isLeader {
					pieces.Add(1) // added
					time.Sleep(100 * time.Millisecond)
				}
				select { // added
				case <-stop: // added
					return // added
				default: // added
				} // added
			}
		}()
		time.Sleep(30 * time.Second)
		require.Positive(t, pieces.Load())
		broker.CutOff("a", nelitest.LinkAll)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, fenced.Load())
		broker.Restore("a", nelitest.LinkAll)
		time.Sleep(30 * time.Second)
		close(stop)
		neli.Await()
		require.EqualValues(t, 2, elected.Load())
	})
}
