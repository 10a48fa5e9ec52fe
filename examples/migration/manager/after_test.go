package manager

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// written is one write of a reconciler to the API server.
type written struct{ who, term string }

// apiServer starts a server that accepts new ConfigMaps, and sends on a channel who wrote them.
func apiServer(t *testing.T) (*rest.Config, <-chan written) {
	writes := make(chan written, 10000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c corev1.ConfigMap
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&c) != nil {
			http.Error(w, "not served", http.StatusNotFound)
			return
		}
		writes <- written{c.Name, c.Data["term"]}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(&c)
	}))
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: -1}
	cfg.ContentType = "application/json"
	return cfg, writes
}

// controllers adds a controller that writes again and again in the name of a process.
func controllers(name string, terms *int, refused chan<- error) func(ctrl.Manager) error {
	return func(m ctrl.Manager) error {
		*terms++
		term := strconv.Itoa(*terms)
		events := make(chan event.GenericEvent, 1)
		events <- event.GenericEvent{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}}
		c, err := controller.New("writer", m, controller.Options{
			Reconciler: reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				// The request does not end with ctx, since this tests the guard.
				err := m.GetClient().Create(context.WithoutCancel(ctx), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace}, Data: map[string]string{"term": term}})
				if err != nil {
					select {
					case refused <- err:
					default:
					}
				}
				return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
			}),
		})
		if err != nil {
			return err
		}
		return c.Watch(source.Channel(events, &handler.EnqueueRequestForObject{}))
	}
}

// A RoundTripper must close the body of a request, also of one that it does not send.
func TestGuardClosesTheBody(t *testing.T) {
	body := &closed{Reader: strings.NewReader("{}")}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", body)
	_, err := guard{neli.Leadership{}, http.DefaultTransport}.RoundTrip(r)
	require.ErrorIs(t, err, neli.ErrFenced)
	require.True(t, body.is)
}

// closed is a body that notes whether it is closed.
type closed struct {
	io.Reader
	is bool
}

func (c *closed) Close() error {
	c.is = true
	return nil
}

func TestAfter(t *testing.T) {
	broker := nelitest.NewBroker(nelitest.Options{})
	defer broker.Close()
	cfg, writes := apiServer(t)
	type process struct {
		stop    context.CancelFunc
		ended   chan error
		refused chan error
	}
	start := func(name string) process {
		n, err := neli.New(neli.Config{LeaderGroupID: "manager", Name: name, Provider: broker.Provider(name)})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		p := process{stop, make(chan error, 1), make(chan error, 1)}
		terms := 0
		opts := ctrl.Options{MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		}}
		go func() {
			p.ended <- errors.Join(after(ctx, n, cfg, opts, controllers(name, &terms, p.refused)), n.Close())
		}()
		t.Cleanup(stop)
		return p
	}
	// writer waits for a write of a process. It returns the write's term, and the number of others' writes before it.
	writer := func(name string) (term string, others int) {
		t.Helper()
		for {
			select {
			case w := <-writes:
				if w.who == name {
					return w.term, others
				}
				others++
			case <-time.After(time.Minute):
				t.Fatal("nothing is written by ", name)
			}
		}
	}
	anna := start("anna")
	term, _ := writer("anna")
	require.Equal(t, "1", term)
	boris := start("boris")

	broker.Freeze("anna") // her reconciler continues
	writer("boris")
	select {
	case err := <-anna.refused:
		require.ErrorIs(t, err, neli.ErrFenced)
	case <-time.After(time.Minute):
		t.Fatal("anna's manager is refused nothing")
	}
	for range 100 {
		_, others := writer("boris")
		require.Zero(t, others, "anna writes beside boris")
	}
	broker.Resume("anna")
	boris.stop()
	require.NoError(t, <-boris.ended)
	term, _ = writer("anna")
	require.Equal(t, "2", term, "a new manager, with controllers of the same names")
	anna.stop()
	require.NoError(t, <-anna.ended)
}
