// Package clientgo moves from leaderelection of client-go.
package clientgo

import (
	"context"
	"log"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func before(ctx context.Context, leases coordinationv1.LeasesGetter, name string, send func()) {
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "billing", Name: "invoicing"},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				for ctx.Err() == nil {
					send()
					wait(ctx, time.Second)
				}
			},
			OnStoppedLeading: func() { log.Fatal("leads no more") },
			OnNewLeader:      func(name string) { log.Print("the leader is ", name) },
		},
	})
}
