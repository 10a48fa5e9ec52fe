// Package manager runs a manager of controller-runtime under package neli.
package manager

import (
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/goneli/neli"
)

// after runs a new manager in each term, since a manager can be started only once. setUp adds the controllers.
func after(ctx context.Context, n *neli.Neli, cfg *rest.Config, opts ctrl.Options, setUp func(ctrl.Manager) error) error {
	opts.LeaderElection = false
	opts.Metrics = metricsserver.Options{BindAddress: "0"} // serve metrics and probes outside, since followers need them, too
	forever := time.Duration(-1)
	opts.GracefulShutdownTimeout = &forever // otherwise Start may return, and release the lease, while a reconciler still works
	again := true
	opts.Controller.SkipNameValidation = &again // the next term's controllers have the same names
	return n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		cfg := rest.CopyConfig(cfg)
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{l, next} })
		m, err := ctrl.NewManager(cfg, opts)
		if err != nil {
			return err
		}
		if err := setUp(m); err != nil {
			return err
		}
		return m.Start(ctx)
	})
}

// guard sends nothing to the API server once the term is over. Reconcilers get contexts that are derived
// from Lead's, and these do not check the clock.
type guard struct {
	term neli.Leadership
	next http.RoundTripper
}

func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if !g.term.Valid() {
		if r.Body != nil {
			r.Body.Close() // as a RoundTripper must
		}
		return nil, neli.ErrFenced
	}
	return g.next.RoundTrip(r)
}
