# Everything installs what it needs by itself: Go alone suffices, and Java 17 with Maven
# for the real-broker suite. Debian's prometheus is installed for metrics, if that may be.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

GO ?= go
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
MODULES := . franz franz/iam peers metrics nelicron examples examples/migration cmd/neli cmd/neli-outbox lab # lab/chaos, lab/bench: Linux
LAB := ./cmd/... ./dbtest ./demo ./demo-peers ./internal/... ./kafkatest ./nursery ./pause ./proxy ./witness # what the machines of lab share
FUZZTIME ?= 20s
SOAK ?= 10m
FOR ?= 3m
SCALE ?= 1000,1,100000
OF ?= TestScale
SEED ?= 1
NOMINATION ?= open
CHAOS ?=
N ?= 20
QUIET ?= 30m
MUTANTS_LIMIT ?= 30m
OUTAGES ?= 200
NIGHT := $(shell date +%Y%m%d)
CLIENT ?=
VERSIONS ?=

# Tests of tables of mutants, by the ends of their names: they have a stage of their own.
MUTANTS := (Guarded|NeedsEveryRule)$$
# What make test runs; CI runs these, and more, in lanes.
TESTS := unit-root unit-modules mutants-root mutants-modules sim cli integration-timed integration-patient integration-examples fenced \
	integration-franz-timed integration-franz-patient metrics
# Tests on real brokers that measure how soon something happens, or sample members every few
# milliseconds: in CI they have the processors first. The other tests on brokers mostly wait.
TIMED := ^Test(ThreeBrokers|BrokerStandsStill|TopicIDsAgree|MixedClients|CommandRuns|Exclusive|Far|Figures|Groups|LogsOfOneBrokerEach|NonExclusive|Sentinel|RollingUpgrade|Member)
# What CI runs a second time, with the client without cgo: the table of ACLs, TLS and
# SCRAM, members that crash and hang, brokers that fail, groups, small logs. The rest at night: TestTopic takes minutes.
FRANZ_TIMED := ExclusiveOpen|ExclusiveAssigned|ThreeBrokers|BrokerStandsStill|Groups|LogsOfOneBrokerEach
FRANZ_PATIENT := Secured
# The lanes of .ci/run, a line each: stages that run one after the other. idle: the stage computes, and runs in the
# kernel's idle class. low: it mostly waits, takes no harm from a late answer, and runs at a lower priority. Not chaos: its samplers must not starve.
define LANES
integration-timed integration-franz-timed chaos-brokers chaos-members
low:integration-patient low:integration-examples low:fenced low:integration-franz-patient
low:cli low:unit-modules low:mutants-modules low:metrics low:browser low:migration low:bench-test low:chaos-test
idle:unit-root idle:sim idle:mutants-root idle:release-check
endef

# What needs no cgo is to build wherever Go does.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# metrics is a folder, too.
.PHONY: booted suspend-peers demo demo-peers check check-root check-franz check-peers check-nelicron test lanes built unit unit-root unit-modules prometheus metrics metrics-doc mutants mutants-root mutants-modules sim soak nightly integration integration-timed integration-patient integration-examples fenced integration-franz integration-franz-timed integration-franz-patient versions outages outbox-brokers fences browser migration picture cli cli-reference chaos chaos-peers chaos-ci chaos-brokers chaos-members chaos-test lint cross tidy commands extras vulnerabilities systemd release release-check cover fuzz bench bench-peers bench-outbox bench-quiet bench-rolling bench-logs bench-scale scale-sim bench-report bench-test clean

demo: ## several processes elect a leader on an embedded broker; one is killed, one suspended
	cd lab && $(GO) run ./demo

demo-peers: ## five processes elect leaders without a broker; one is killed with its log, one suspended, the network is cut
	cd lab && $(GO) run ./demo-peers

# What takes long for what it finds: simulations with all their seeds, thousands of roles,
# hundreds of members.
LENGTHY := Simulation(Repeats)?$$|WithoutMercy$$|TestFewClaimsOnASlowLog|TestSuccessorClaimsManyRolesAtOnce|TestManyClientsShareOneLook|TestModel$$|TestOutage$$|TestScale$$|TestRestart$$|TestGather$$

# Those of franz and peers mostly wait: eight at a time, beside the others.
check: ## before a commit: lint, the tests without a broker but for the lengthy ones, 200 seeds of the simulations; no race detector
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory -j 4 -O check-root check-franz check-peers check-nelicron

check-root:
	$(GO) test -short -skip '$(MUTANTS)|$(LENGTHY)' ./...
	CGO_ENABLED=0 $(GO) test -short -run 'Simulation$$' ./internal/lease ./internal/quorum
	CGO_ENABLED=0 NELI_SEEDS=200 $(GO) test -run '^Test(Small)?Simulation$$' .

check-franz:
	cd franz && $(GO) test -short -parallel 8 ./...

check-peers:
	cd peers && $(GO) test -short -parallel 8 -skip '$(MUTANTS)|TestSuspended' ./...

check-nelicron:
	cd nelicron && $(GO) test -short -skip '$(MUTANTS)|TestProcesses' ./...

# The other tests run the guards on the source as it is.
test: export NELI_MUTANTS := only
test: $(TESTS) ## everything

export LANES
lanes: $(foreach t,$(TESTS),$(if $(filter $t %:$t,$(LANES)),,$(error no lane has $t))) # for .ci/run
	@echo "$$LANES"

# A compiler beside tests that measure time would starve them. With Go's caches filled this takes seconds.
built: # compiles what CI's lanes test, without linking
	for m in . franz franz/iam peers metrics nelicron examples cmd/neli-outbox; do (cd $$m && $(GO) list -export -test -race ./... >/dev/null) || exit 1; done
	cd lab && $(GO) list -export -test -race $(LAB) ./integration/... ./chaos/... >/dev/null
	for m in . franz peers nelicron cmd/neli cmd/neli-outbox; do (cd $$m && CGO_ENABLED=0 $(GO) list -export -test ./... >/dev/null) || exit 1; done
	for m in examples/migration cmd/neli; do (cd $$m && $(GO) list -export -test ./... >/dev/null) || exit 1; done
	cd lab && $(GO) list -export -test ./bench/... ./release/... >/dev/null

# These are long, and run in synctest bubbles, in which hardly two goroutines run at once: a second processor only costs
# the time to wake it, a fifth of all. The race detector needs none, since it looks at what is ordered, not at what coincides.
LONG := . ./internal/scenario ./internal/nonexclusive

unit: unit-root unit-modules ## without a broker, race detector on

unit-root: # small packages first
	$(GO) test -race -timeout 30m -skip '$(MUTANTS)' $$($(GO) list ./... | grep -vFx "$$($(GO) list $(LONG))")
	GOMAXPROCS=1 $(GO) test -p 2 -race -timeout 30m -skip '$(MUTANTS)' $(LONG)
	CGO_ENABLED=0 $(GO) test -run TestNewWithoutCgo ./internal/confluent
	$(GO) test -tags neli_nolibrdkafka -run TestNewWithoutCgo ./internal/confluent

unit-modules: # mostly waits
	cd franz && $(GO) test -race -parallel 8 -timeout 15m ./...
	cd franz/iam && $(GO) test -race -timeout 5m ./...
	cd peers && $(GO) test -race -parallel 8 -timeout 15m -skip '$(MUTANTS)' ./...
	cd nelicron && $(GO) test -race -timeout 15m -skip '$(MUTANTS)|TestProcesses' ./...

prometheus: # Debian's, unless there is one
	@command -v prometheus >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus && (systemctl disable --now prometheus || service prometheus stop || true)) >/dev/null 2>&1 || \
		{ echo "prometheus is missing, and could not be installed: apt-get install prometheus, as root"; exit 1; }

metrics: prometheus ## the collector, the alerts, the dashboard; with a real Prometheus for a minute (apt-get install prometheus)
	cd metrics && $(GO) test -race -timeout 10m ./...

metrics-doc: ## docs/metrics.md from the collector and the alerts
	cd metrics && $(GO) generate ./...

# Never from the cache, which does not see the packages that mutants change.
mutants: mutants-root mutants-modules ## without each of its rules, the library must fail for the stated reason; NELI_SEEDS=5000 MUTANTS_LIMIT=4h for more

# In simulations and models, a tenth to a third of the time is the collector's.
mutants-root sim: export GOGC := 200

mutants-root:
	CGO_ENABLED=0 $(GO) test -count=1 -p 1 -timeout $(MUTANTS_LIMIT) -run '$(MUTANTS)' ./...

mutants-modules: # mostly waits
	cd cmd/neli && CGO_ENABLED=0 $(GO) test -count=1 -parallel 8 -run '$(MUTANTS)' ./...
	cd peers && CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m -run '$(MUTANTS)' ./...
	cd nelicron && CGO_ENABLED=0 $(GO) test -count=1 -run '$(MUTANTS)' ./...
	cd franz && CGO_ENABLED=0 $(GO) test -count=1 -run '$(MUTANTS)' ./franzfence
	cd cmd/neli-outbox && CGO_ENABLED=0 $(GO) test -count=1 -run '$(MUTANTS)' .

sim: ## without the race detector: the models, the simulations of the lease and of the majority, whole processes under 2,000 seeds of faults, on small logs under 250, both with sentinels under 100, non-exclusive ones under 300; and what unit has less of
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m -skip '$(MUTANTS)' ./internal/lease ./internal/quorum ./fence
	CGO_ENABLED=0 $(GO) test -count=1 -run 'TestFewClaimsOnASlowLog|TestFarMembersLeadTheirShares|WithoutMercy$$' ./internal/scenario ./nelitest
	GOMAXPROCS=1 CGO_ENABLED=0 $(GO) test -p 2 -count=1 -timeout 30m -run 'Test(Shared|Small|Sentinel|SmallSentinel)?Simulation(Repeats)?$$' -v . ./internal/nonexclusive | grep -v '^=== \|^ *--- PASS'

soak: ## SOAK=10m: new seeds for as long as asked, of each whole-library simulation; then 10,000 kills beside a sentinel
	NELI_SOAK=$(SOAK) CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run 'Test(Small)?(Sentinel)?Simulation$$' -v . | grep -v '^=== \|^ *--- PASS'
	NELI_KILLS=10000 $(GO) test -count=1 -timeout 0 -run 'TestNothingCountsAfterItsRelease$$' -v ./internal/sentinel | grep -v '^=== \|^ *--- PASS'

nightly: ## what is too long for CI, with new seeds each night: some hours; chaos needs root
	NELI_SEEDS=4000 $(MAKE) mutants MUTANTS_LIMIT=4h
	NELI_MODEL=deep CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -run '^TestModel$$' ./...
	$(MAKE) soak SOAK=30m
	$(MAKE) fuzz FUZZTIME=2m
	NELI_ROUNDS=200 $(MAKE) cli
	$(MAKE) booted
	$(MAKE) outages OUTAGES=20
	$(MAKE) fences FOR=1h
	$(MAKE) outbox-brokers FOR=15m
	$(MAKE) suspend-peers
	cd lab/integration && NELI_FIGURES=20 $(GO) test -count=1 -timeout 60m -run TestFigures -v . | grep -v '^=== '
	$(MAKE) versions VERSIONS=all
	$(MAKE) integration-franz FRANZ=.
	$(MAKE) chaos FOR=15m SEED=$(NIGHT) NOMINATION=open
	$(MAKE) chaos FOR=15m SEED=$(NIGHT) NOMINATION=assigned
	$(MAKE) chaos-peers FOR=15m SEED=$(NIGHT)
	$(MAKE) chaos-peers FOR=15m SEED=$(NIGHT) CHAOS=-sentinels
	NELI_PROVIDER=franz $(MAKE) chaos FOR=15m SEED=$(NIGHT) NOMINATION=open
	NELI_PROVIDER=franz $(MAKE) chaos FOR=15m SEED=$(NIGHT) NOMINATION=assigned

# Never from the cache, which does not see what the processes are built of that tests start.
integration: integration-timed integration-patient integration-examples fenced ## against a real Kafka (NELI_BOOTSTRAP=host:port for one of yours)

integration-timed:
	cd lab/integration && $(GO) test -count=1 -race -timeout 40m -run '$(TIMED)' .

# Its tests wait for brokers to start, sessions to end, tokens to be renewed: four at a time.
integration-patient:
	cd lab && $(GO) test -count=1 -race -p 1 -timeout 15m $(LAB)
	cd lab/integration && $(GO) test -count=1 -race -parallel 3 -timeout 40m -skip '$(TIMED)' . ./cost

fenced:
	cd lab/integration && $(GO) test -count=1 -race -timeout 40m ./fenced

integration-examples:
	cd examples && $(GO) test -count=1 -race -p 1 -parallel 8 -timeout 15m ./...
	cd cmd/neli-outbox && $(GO) test -count=1 -race -parallel 8 -timeout 15m -skip '$(MUTANTS)' .
	cd nelicron && $(GO) test -count=1 -race -run TestProcesses ./...

integration-franz: FRANZ := ^Test($(FRANZ_TIMED)|$(FRANZ_PATIENT))$$
integration-franz-timed: FRANZ := ^Test($(FRANZ_TIMED))$$
integration-franz-patient: FRANZ := ^Test($(FRANZ_PATIENT))$$
integration-franz: ## likewise with the client without cgo, FRANZ=^TestSecured$$$$ for some of it
integration-franz integration-franz-timed integration-franz-patient:
	cd lab/integration && NELI_PROVIDER=franz $(GO) test -count=1 -race -timeout 40m -run '$(FRANZ)' .

versions: ## the oldest version of Kafka, one in the middle and the newest; VERSIONS=all for all of them
	cd lab/integration && NELI_VERSIONS=$(VERSIONS) $(GO) test -count=1 -race -timeout 40m -run '^TestVersions$$' -v . | grep -v '^=== '

outages: ## OUTAGES=200 of half a minute, of one broker and of three, three clusters of each in parallel; ten members on either client must go on by themselves; about an hour on two cores that do nothing else
	cd lab/integration && NELI_OUTAGES=$(OUTAGES) $(GO) test -count=1 -parallel 6 -timeout 0 -run '^TestOutages$$' -v . | grep -v '^=== '

outbox-brokers: ## the outbox's relays for FOR=3m on three brokers that crash or restart in turn; relays and the database fail, too
	cd cmd/neli-outbox && NELI_OUTBOX_FOR=$(FOR) CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run '^TestNothingIsLostOnThreeBrokers$$' -v .

fences: ## FOR=3m of suspended leaders on a real broker, with both clients
	cd lab/integration && NELI_FENCE=$(FOR) $(GO) test -count=1 -timeout 0 -run '^TestSuspendedLeaders$$' -v ./fenced

browser: ## the page of nelihttp in a real Chromium (Debian's, or what NELI_CHROMIUM names)
	cd lab/integration && CGO_ENABLED=0 $(GO) test -count=1 -timeout 10m ./browser

picture: ## docs/pages.png and docs/pages-crash.png
	cd lab/integration && NELI_PICTURE=$(CURDIR)/docs/pages.png CGO_ENABLED=0 $(GO) test -count=1 -run '/picture' ./browser

cli: ## the command neli, on a Kafka in memory; NELI_ROUNDS=200 for more of what is killed and stopped; Linux
	cd cmd/neli && $(GO) test -count=1 -timeout 30m -skip '$(MUTANTS)' ./...

booted: ## the sentinel's unit under a real systemd, and memory.oom.group, in a machine that QEMU emulates: 6 minutes; root, Debian for amd64
	cmd/neli/boot/boot.sh

suspend-peers: ## three members without a broker, each of them suspended in turn 300 times while all hand over roles: 12 minutes; NELI_ROUNDS=n; Linux
	cd peers && NELI_ROUNDS=$${NELI_ROUNDS:-300} CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run TestSuspendedMembersLoseNothing -v .

cli-reference: ## docs/cli.md
	cd cmd/neli && NELI_UPDATE=1 $(GO) test -count=1 -run TestReference ./internal/cli

chaos: ## a real cluster disturbed for FOR=3m from SEED=1, NOMINATION=open or assigned, with the further flags CHAOS=-sentinels; root, Linux; writes lab/chaos/chaos-report (docs/correctness.md)
	cd lab/chaos && $(GO) run . -for $(FOR) -seed $(SEED) -nomination $(NOMINATION) $(CHAOS) -out chaos-report/$(NOMINATION)

# What takes Kafka's own patience comes first, for it might not come at all.
chaos-peers: ## five members with a log host each, no broker, disturbed for FOR=3m from SEED=1; root, Linux
	cd lab/chaos && $(GO) run . -peers -for $(FOR) -seed $(SEED) $(CHAOS) -out chaos-report/peers

chaos-ci: chaos-brokers chaos-members ## short runs, one for each nomination, one with the client without cgo, two without a broker, of which one has sentinels; a violation fails

chaos-brokers:
	cd lab/chaos && $(GO) run . -for 90s -seed 2 -nomination open -first 'broker frozen past its session' -out chaos-report/open
	cd lab/chaos && $(GO) run . -for 90s -seed 3 -nomination assigned -first 'link between brokers cut for long' -out chaos-report/assigned
	cd lab/chaos && NELI_PROVIDER=franz $(GO) run . -for 90s -seed 4 -nomination assigned -first 'broker frozen past its session' -out chaos-report/franz

chaos-members:
	cd lab/chaos && $(GO) run . -peers -for 150s -seed 5 -out chaos-report/peers
	cd lab/chaos && $(GO) run . -peers -sentinels -for 60s -seed 3 -only 'sentinel alive, member killed; sentinel killed; sentinel stopped, member killed; false members at the sentinel; member frozen; member executes another program; files closed, member killed; a stranger'\''s socket' -out chaos-report/sentinels

chaos-test: ## the chaos machine itself; root, Linux
	cd lab/chaos && $(GO) test -count=1 -race -p 1 -timeout 20m ./...

lint:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	@$(MAKE) --no-print-directory -j 2 -O $(MODULES:%=lint-%) cross
	cd lab/release && $(GO) run ./tidy -check
	$(GO) run $(ACTIONLINT) -shellcheck= .github/workflows/*.yml
	CGO_ENABLED=0 $(GO) vet .
	$(GO) vet -tags neli_nolibrdkafka .
	cd cmd/neli && $(GO) vet -tags booted . && $(GO) run $(STATICCHECK) -tags booted .
	@export GOWORK=off; oldest=go$$($(GO) list -m -f '{{.GoVersion}}'); if GOTOOLCHAIN=$$oldest $(GO) version; then GOTOOLCHAIN=$$oldest $(GO) vet ./...; \
		else echo "not checked with $$oldest: this toolchain cannot be had here"; fi

$(MODULES:%=lint-%): lint-%:
	@echo "lint $*"; cd $* && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...

cross: ## what needs no cgo builds on each of PLATFORMS
	@for p in $(PLATFORMS); do echo "build $$p"; for m in . franz cmd/neli cmd/neli-outbox; do \
		(cd $$m && CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./...) || exit 1; done; done

# VERSION is what the commands say of themselves: nothing but what Go knows unless it is given.
OUT ?= dist
commands: ## neli and neli-outbox in the folder OUT=dist, static, VERSION=vX.Y.Z in them; GOOS, GOARCH as for go build
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X github.com/goneli/neli/internal/version.text=$(VERSION)' -o $(OUT)/ ./cmd/neli ./cmd/neli-outbox

extras: ## completions of the commands, manual pages of neli, and the licences of what builds contain, in dist-extras
	rm -rf dist-extras && mkdir -p dist-extras/completions
	cd lab/release && $(GO) run ./notice >../../dist-extras/NOTICE
	$(MAKE) --no-print-directory commands GOOS= GOARCH= OUT=dist-extras
	dist-extras/neli man dist-extras/man
	for c in neli neli-outbox; do for shell in bash zsh fish powershell; do \
		dist-extras/$$c completion $$shell >dist-extras/completions/$$c.$$shell || exit 1; done; rm dist-extras/$$c; done

tidy: ## each module's go.mod and go.sum, released or not
	cd lab/release && $(GO) run ./tidy

VULNDB ?= https://vuln.go.dev
vulnerabilities: ## known ones in what we require; asks a public database, or VULNDB=file:///dir with a copy of it
	for m in $(MODULES); do (cd $$m && $(GO) run $(GOVULNCHECK) -db $(VULNDB) ./...) || exit 1; done

systemd: # Debian's, for systemd-analyze
	@command -v systemd-analyze >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd) >/dev/null 2>&1 || \
		{ echo "systemd-analyze is missing, and could not be installed: apt-get install systemd, as root"; exit 1; }

# Rehearsed in a clone first: what cannot be installed is not tagged.
release: ## VERSION=vX.Y.Z: writes it, commits, tags all modules, says what to push; pushes nothing
	$(if $(VERSION),,$(error VERSION is missing: make release VERSION=vX.Y.Z))
	cd lab/release && $(GO) run ./check -version $(VERSION) && $(GO) run ./cut $(VERSION)

release-check: systemd ## can users get, build, install and run what is committed; is each break of the API in the changelog; image, units, manifests
	cd lab/release && $(GO) test -count=1 -timeout 10m ./...
	cd lab/release && $(GO) run ./check

cover:
	$(GO) test -coverprofile=cover.out -coverpkg=.,./nelitest ./...
	$(GO) tool cover -func=cover.out | tail -1

fuzz: ## FUZZTIME=20s each
	$(GO) test -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZTIME) ./internal/lease
	$(GO) test -run '^$$' -fuzz FuzzConfig -fuzztime $(FUZZTIME) .
	$(GO) test -run '^$$' -fuzz FuzzRedact -fuzztime $(FUZZTIME) ./internal/redact
	cd peers && $(GO) test -run '^$$' -fuzz FuzzLog -fuzztime $(FUZZTIME) ./smalllog
	cd peers && $(GO) test -run '^$$' -fuzz FuzzHost -fuzztime $(FUZZTIME) .

bench: ## in memory, then CPU on a real broker, then fail-over times beside the prototype's
	$(GO) test -run '^$$' -bench . -benchmem .
	cd lab/integration && $(GO) test -run '^$$' -bench . ./cost
	cd lab/integration && NELI_FIGURES=10 $(GO) test -count=1 -run TestFigures -v . | grep -v '^=== '

# Built first: a compiler beside the brokers would be measured, too.
BENCH = cd lab/bench && $(GO) build -o bench . && ./bench

bench-peers: ## beside etcd and raft, N=20 trials each, CLIENT=franz too; about an hour; writes docs/benchmarks.md
	$(BENCH) run -n $(N) -client "$(CLIENT)" -command "make bench-peers N=$(N) CLIENT=$(CLIENT)"

bench-outbox: ## rows a second of the outbox relay beside a plain loop, N=20 rounds
	cd cmd/neli-outbox && CGO_ENABLED=0 $(GO) test -run '^$$' -bench Relay -benchtime $(N)x -timeout 0 .

bench-quiet: ## terms lost in QUIET=30m of nothing, T = 300 ms on one broker, 500 ms on three
	$(BENCH) quiet -for $(QUIET)

bench-rolling: ## terms lost while three brokers are restarted in turn, T = 2 s
	$(BENCH) rolling

bench-logs: ## one replicated log and Logs: 3 beside it, T = 500 ms, while brokers are killed, stopped, closed and restarted; a quarter of an hour; writes docs/benchmarks.md
	$(BENCH) logs

bench-scale: ## 100 members and 100,000 roles, 20 and 1,000, one that leads 1,000, on one broker, T = 5 s; 20 minutes; fails if a step was longer than T/50; writes docs/benchmarks.md
	$(BENCH) scale -client "$(CLIENT)"

scale-sim: ## a tenth of SCALE=members,partitions,roles dies, in simulated time; OF=TestOutage SCALE=200,1,100000, OF=TestGather or OF=TestRestart SCALE=100,1,100000
	NELI_SCALE=$(SCALE) CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run '$(OF)$$' -v .

bench-report: ## docs/benchmarks.md and the tables from bench/results/results.json
	$(BENCH) report

# client-go and controller-runtime take minutes to build: without the race detector, as lint has built them.
migration: ## programs before and after they moved here from other systems; Linux
	cd examples/migration && $(GO) test -count=1 -timeout 10m ./...

# etcd takes minutes to build with the race detector, which is for our own code.
bench-test: ## the pure parts of bench, and each trial beside a sentinel once
	cd lab/bench && $(GO) test -race ./clients ./idle ./measure ./probe
	cd lab/bench && $(GO) test ./...

clean:
	rm -rf cover.out dist dist-extras lab/*/logs examples/logs examples/*/logs cmd/*/logs lab/chaos/chaos-report lab/bench/bench
