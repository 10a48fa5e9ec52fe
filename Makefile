# Everything installs what it needs by itself: Go alone suffices, and Java 17 with Maven
# for the real-broker suite. Debian's prometheus is installed for metrics, if that may be.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

GO ?= go
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
MODULES := . franz franz/iam peers metrics nelicron neligrpc examples examples/migration cmd/neli cmd/neli-outbox lab # lab/chaos, lab/bench: Linux
LAB := ./cmd/... ./child ./clients ./dbtest ./demo ./demo-peers ./internal/... ./kafkatest ./nursery ./pause ./proxy ./witness # what the machines of lab share
FUZZTIME ?= 20s
SOAK ?= 10m
FOR ?= 3m
SEED ?= 1
CHAOS ?=
HARDER := far; slow followers; full disks; clocks; new topics
MUTANTS_LIMIT ?= 30m
NIGHT := $(shell date +%Y%m%d)
VERSIONS ?=

# Tests of tables of mutants, by the ends of their names: they have a stage of their own.
MUTANTS := (Guarded|NeedsEveryRule)$$
# Tests that take long for what they find: simulations with all their seeds, thousands of roles, hundreds of members.
LENGTHY := Simulation(Repeats)?$$|WithoutMercy$$|TestFewClaimsOnASlowLog|TestSuccessorClaimsManyRolesAtOnce|TestManyClientsShareOneLook|TestModel$$|TestOutage$$|TestScale$$|TestRestart$$|TestGather$$
# Packages whose tests take long in synctest bubbles, in which hardly two goroutines run at once: a second processor
# only costs the time to wake it, a fifth of all. The race detector needs none: it looks at what is ordered, not at what coincides.
LONG := . ./internal/scenario ./internal/nonexclusive
# A first look at a real Kafka: elections, in both modes.
KAFKA := ^Test(ExclusiveOpen|NonExclusive)$$
# Tests on real brokers that measure how soon something happens, or sample members every few
# milliseconds: in CI they have the processors first. The other tests on brokers mostly wait.
TIMED := ^Test(ThreeBrokers|BrokerStandsStill|FirstLeader|TopicIDsAgree|MixedClients|CommandRuns|Exclusive|Far|Groups|LogsOfOneBrokerEach|NonExclusive|Sentinel|RollingUpgrade)
# What runs a second time with the client without cgo, one after the other: members that crash and hang, brokers that
# fail, groups, small logs, and then the table of ACLs, TLS and SCRAM. The rest does at night, with FRANZ=. : TestTopic takes minutes.
FRANZ ?= ^Test(ExclusiveOpen|ExclusiveAssigned|ThreeBrokers|BrokerStandsStill|Groups|LogsOfOneBrokerEach)$$ ^TestSecured$$

# What make test-all runs beyond make test, in the lanes of .ci/run, a line each: stages that run one after the other.
# idle: the stage computes, and runs in the kernel's idle class. There are two such lanes, since a stage often needs one
# processor only. mutants-root comes last, when little else runs: some of its guards take real time. low: the stage mostly
# waits, takes no harm from a late answer, and runs at a lower priority. Not chaos: its samplers must not starve.
define LANES
integration-timed integration-franz chaos-ci
low:integration-patient low:integration-examples
low:cli low:mutants-modules low:metrics low:browser low:migration low:lab-test
idle:race idle:release-check idle:mutants-root
idle:sim idle:spec
endef

# What needs no cgo is to build wherever Go does.
PLATFORMS := linux/arm64 darwin/arm64 windows/amd64

# Each target is a task: none is a file, though metrics is the name of a folder.
.PHONY: $(MAKECMDGOALS)

demo: ## several processes elect a leader on an embedded broker; one is killed, one suspended
	cd lab && $(GO) run ./demo

demo-peers: ## five processes elect leaders without a broker; one is killed with its log, one suspended, the network is cut
	cd lab && $(GO) run ./demo-peers

demo-page: ## a page that shows and explains elections, with faults to press: one file, without a server
	cd lab && GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) build -trimpath -tags neli_nolibrdkafka -ldflags '-s -w' -o demo-page/out/world.wasm ./demo-page
	cd lab/demo-page/out && gzip -9 <world.wasm | base64 >world.txt && cp ../page/* "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" . && \
		awk '/^{{.*}}$$/ { f = substr($$0, 3, length($$0) - 4); while ((getline line <f) > 0) print line; next } 1' page.html >../demo.html
	@rm -r lab/demo-page/out && echo open file://$(CURDIR)/lab/demo-page/demo.html

check: ## before a commit: lint but for other platforms, the tests without a broker but for the lengthy ones, 200 seeds of the simulations; no race detector
	@echo '1 of 3: make lint'
	@$(MAKE) --no-print-directory lint PLATFORMS=
	@echo '2 of 3: tests, minutes; go test prints a line for each package when all before it are done'
	$(GO) test -short -skip '$(MUTANTS)|$(LENGTHY)' $(foreach m,. franz peers nelicron neligrpc,$(m:%=./%/...))
	@echo '3 of 3: simulations, 200 seeds each'
	$(short-simulations)

define short-simulations
CGO_ENABLED=0 $(GO) test -short -run 'Simulation$$' ./internal/lease ./internal/quorum
CGO_ENABLED=0 NELI_SEEDS=200 $(GO) test -run '^Test(Small)?Simulation$$' .
endef

# The other tests run the guards on the source as it is.
test test-all: export NELI_MUTANTS := only
test: ## elections on a real Kafka, if Java 17 and Maven are there; each package's tests, with the race detector where it finds something; 200 seeds of the simulations
	@echo 'first what the tests need is compiled, here with the names of packages, in minutes the first time and in seconds later'
	@$(GO) list -v -export -test -race ./... ./franz/... ./franz/iam/... ./peers/... ./nelicron/... ./neligrpc/... ./lab/integration >/dev/null
	@echo 'integration-short runs alone, in two minutes: a compiler beside it makes its broker stand still for seconds'
	@$(MAKE) --no-print-directory integration-short
	@echo 'then unit-root and unit-modules side by side; go test prints a line for each package when it is done'
	@$(MAKE) --no-print-directory unit

test-all: test ## make test, then everything else that CI runs; root, Linux; an hour
	$(foreach s,built $(LANES),$(MAKE) --no-print-directory $(lastword $(subst :, ,$s)) &&) true

export LANES
lanes: # for .ci/run
	@echo "$$LANES"

# A compiler beside tests that measure time starves them and their brokers. With Go's caches filled this takes seconds.
built: # compiles what CI's lanes test, without linking
	for m in . franz franz/iam peers metrics nelicron neligrpc examples cmd/neli-outbox; do (cd $$m && $(GO) list -export -test -race ./... >/dev/null) || exit 1; done
	cd lab && $(GO) list -export -test -race $(LAB) ./integration/... ./chaos/... >/dev/null
	for m in . franz peers nelicron neligrpc examples cmd/neli cmd/neli-outbox; do (cd $$m && CGO_ENABLED=0 $(GO) list -export -test ./... >/dev/null) || exit 1; done
	for m in examples/migration cmd/neli; do (cd $$m && $(GO) list -export -test ./... >/dev/null) || exit 1; done
	cd lab && $(GO) list -export -test ./bench/... ./release/... >/dev/null

unit: ## without a broker
	@nice -n 15 $(MAKE) --no-print-directory -j 2 -Oline unit-root unit-modules

unit-root:
	$(GO) test -race -timeout 30m -skip '$(MUTANTS)' $$($(GO) list ./... | grep -vFx "$$($(GO) list $(LONG))")
	$(GO) test -short -skip '$(MUTANTS)|$(LENGTHY)' $(LONG)
	$(short-simulations)
	CGO_ENABLED=0 $(GO) test -run TestNewWithoutCgo ./internal/confluent
	$(GO) test -tags neli_nolibrdkafka -run TestNewWithoutCgo ./internal/confluent

unit-modules: # mostly waits
	cd franz && $(GO) test -race -parallel 8 -timeout 15m ./...
	cd franz/iam && $(GO) test -race -timeout 5m ./...
	cd peers && $(GO) test -race -parallel 8 -timeout 15m -skip '$(MUTANTS)' ./...
	cd nelicron && $(GO) test -race -timeout 15m -skip '$(MUTANTS)' ./...
	cd neligrpc && $(GO) test -race -timeout 5m -skip '$(MUTANTS)' ./...

integration-short:
	cd lab/integration && $(GO) test -count=1 -race -timeout 10m -run '$(KAFKA)' .

race: # what unit-root runs without the race detector
	GOMAXPROCS=1 $(GO) test -p 2 -race -timeout 40m -skip '$(MUTANTS)' $(LONG)

metrics: ## the collector, the alerts, the dashboard; with a real Prometheus, Debian's, for a minute
	@command -v prometheus >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus && (systemctl disable --now prometheus || service prometheus stop || true)) >/dev/null 2>&1 || \
		{ echo "prometheus is missing, and could not be installed: apt-get install prometheus, as root"; exit 1; }
	cd metrics && $(GO) test -race -timeout 10m ./...

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
	cd neligrpc && CGO_ENABLED=0 $(GO) test -count=1 -run '$(MUTANTS)' ./...
	cd franz && CGO_ENABLED=0 $(GO) test -count=1 -run '$(MUTANTS)' ./franzfence
	cd cmd/neli-outbox && CGO_ENABLED=0 $(GO) test -count=1 -run '$(MUTANTS)' .

sim: ## without the race detector: the model of the fence, the simulations of the lease and of the majority, whole processes under 2,000 seeds of faults, on small logs under 250, both with sentinels under 100, non-exclusive ones under 300; and what unit-root has less of
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m -skip '$(MUTANTS)' ./internal/lease ./internal/quorum ./fence
	CGO_ENABLED=0 $(GO) test -count=1 -run 'TestFewClaimsOnASlowLog|TestFarMembersLeadTheirShares|WithoutMercy$$' ./internal/scenario ./nelitest
	GOMAXPROCS=1 CGO_ENABLED=0 $(GO) test -p 2 -count=1 -timeout 30m -run 'Test(Shared|Small|Sentinel|SmallSentinel)?Simulation(Repeats)?$$' -v . ./internal/nonexclusive | grep -v '^=== \|^ *--- PASS'

spec: export NELI_MUTANTS := only
spec: ## TLC searches the TLA+ specification (spec/Rules.tla), with all rules and without each, then judges NELI_SEEDS=20 traces of the code and those of mutants: four minutes of two cores; Java 17, and Maven for the first run
	./spec/run.sh
	export CGO_ENABLED=0 NELI_TLC=$$(./spec/run.sh --jar) && $(GO) test -count=1 -timeout 0 -run '^TestTracesAreAllowed$$' ./internal/lease ./internal/quorum . && \
		NELI_SEEDS= $(GO) test -count=1 -timeout 0 -run '^TestTracesOfMutantsAreRefused$$' ./internal/lease ./internal/quorum

soak: ## SOAK=10m: new seeds for as long as asked, of each whole-library simulation; then 10,000 kills beside a sentinel
	NELI_SOAK=$(SOAK) CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run 'Test(Small)?(Sentinel)?Simulation$$' -v . | grep -v '^=== \|^ *--- PASS'
	NELI_KILLS=10000 $(GO) test -count=1 -timeout 0 -run 'TestNothingCountsAfterItsRelease$$' -v ./internal/sentinel | grep -v '^=== \|^ *--- PASS'

nightly: ## what is too long for CI, with new seeds each night: some hours; chaos needs root
	NELI_SEEDS=4000 $(MAKE) mutants MUTANTS_LIMIT=4h
	NELI_MODEL=deep CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -run '^TestModel$$' ./fence
	NIGHTLY=1 NELI_SEEDS=600 $(MAKE) spec
	export NELI_TLC=$$(./spec/run.sh --jar) && cd lab/integration && $(GO) test -count=1 -timeout 0 -run '^TestTracesOfProcesses$$' -v . | grep -v '^=== '
	$(MAKE) soak SOAK=30m
	$(MAKE) fuzz FUZZTIME=2m
	NELI_ROUNDS=200 $(MAKE) cli
	cmd/neli/boot/boot.sh
	cd lab/integration && NELI_OUTAGES=20 $(GO) test -count=1 -parallel 6 -timeout 0 -run '^TestOutages$$' -v . | grep -v '^=== '
	cd lab/integration && NELI_FENCE=1h $(GO) test -count=1 -timeout 0 -run '^TestSuspendedLeaders$$' -v ./fenced
	cd cmd/neli-outbox && NELI_OUTBOX_FOR=15m CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run '^TestNothingIsLostOnThreeBrokers$$' -v .
	$(MAKE) versions VERSIONS=all
	$(MAKE) integration-franz FRANZ=.
	$(MAKE) chaos FOR=15m SEED=$(NIGHT) CHAOS='-nomination open -t 5s -with "sentinels; prepare; $(HARDER)"'
	$(MAKE) chaos FOR=15m SEED=$(NIGHT) CHAOS='-nomination assigned'
	$(MAKE) chaos FOR=15m SEED=$(NIGHT) CHAOS='-t 5s -with "sentinels; prepare; logs; $(HARDER)"'
	$(MAKE) chaos FOR=15m SEED=$(NIGHT) CHAOS='-peers -t 5s -with "sentinels; prepare"'
	NELI_PROVIDER=franz $(MAKE) chaos FOR=15m SEED=$(NIGHT) CHAOS='-nomination open'
	NELI_PROVIDER=franz $(MAKE) chaos FOR=15m SEED=$(NIGHT) CHAOS='-nomination assigned -t 5s -with "sentinels; $(HARDER)"'
	$(MAKE) chaos CHAOS='-each 20 -t 5s'
	$(MAKE) chaos CHAOS='-each 20 -t 1s'

# Never from the cache, which does not see what the processes are built of that tests start.
integration: integration-short integration-timed integration-patient integration-examples ## against a real Kafka (NELI_BOOTSTRAP=host:port for one of yours)

integration-timed:
	cd lab/integration && $(GO) test -count=1 -race -timeout 40m -run '$(TIMED)' -skip '$(KAFKA)' .

# Its tests wait for brokers to start, sessions to end, tokens to be renewed: three at a time.
integration-patient:
	cd lab && $(GO) test -count=1 -race -p 1 -timeout 15m $(LAB)
	cd lab/integration && $(GO) test -count=1 -race -p 1 -parallel 3 -timeout 40m -skip '$(TIMED)' . ./fenced ./routed

integration-examples:
	cd examples && $(GO) test -count=1 -race -p 1 -parallel 8 -timeout 15m ./...
	cd cmd/neli-outbox && $(GO) test -count=1 -race -parallel 8 -timeout 15m -skip '$(MUTANTS)' .

integration-franz: ## what matters most of integration, with the client without cgo, or FRANZ=^TestSecured$$$$
	cd lab/integration && $(foreach r,$(FRANZ),NELI_PROVIDER=franz $(GO) test -count=1 -race -timeout 40m -run '$r' . &&) true

versions: ## the oldest version of Kafka, one in the middle and the newest; VERSIONS=all for all of them
	cd lab/integration && NELI_VERSIONS=$(VERSIONS) $(GO) test -count=1 -race -timeout 40m -run '^TestVersions$$' -v . | grep -v '^=== '

browser: demo-page ## the page of nelihttp and the one of demo-page in a real Chromium (Debian's, or what NELI_CHROMIUM names)
	cd lab/integration && CGO_ENABLED=0 $(GO) test -count=1 -timeout 10m ./browser

cli: ## the command neli, on a Kafka in memory; NELI_ROUNDS=200 for more of what is killed and stopped; Linux
	cd cmd/neli && $(GO) test -count=1 -timeout 30m -skip '$(MUTANTS)' ./...

chaos: ## a real cluster disturbed for FOR=3m from SEED=1, with the further flags CHAOS='-nomination assigned', or CHAOS=-peers for members without a broker, CHAOS='-each 20 -t 5s' for fail-over by kind of fault; root, Linux; writes lab/chaos/chaos-report (docs/correctness.md)
	cd lab/chaos && $(GO) run . -for $(FOR) -seed $(SEED) $(CHAOS) -out chaos-report/run

# What takes Kafka's own patience comes first, for it might not come at all. A violation fails.
chaos-ci:
	cd lab/chaos && $(GO) run . -for 90s -seed 2 -nomination open -first 'broker frozen past its session' -out chaos-report/open
	cd lab/chaos && $(GO) run . -for 90s -seed 3 -nomination assigned -first 'link between brokers cut for long' -out chaos-report/assigned
	cd lab/chaos && NELI_PROVIDER=franz $(GO) run . -for 90s -seed 4 -nomination assigned -first 'broker frozen past its session' -out chaos-report/franz
	cd lab/chaos && $(GO) run . -peers -for 150s -seed 5 -out chaos-report/peers

# client-go and controller-runtime take minutes to build: without the race detector, as lint has built them.
migration: ## programs before and after they moved here from other systems; Linux
	cd examples/migration && $(GO) test -count=1 -timeout 10m ./...

# etcd takes minutes to build with the race detector, which is for our own code.
lab-test: ## the chaos machine itself, the pure parts of bench, and some of its trials once; root, Linux
	cd lab && $(GO) test -count=1 -race -p 1 -timeout 20m ./chaos/... ./bench/idle ./bench/measure
	cd lab && $(GO) test ./bench/...

# One run of staticcheck for all modules looks at what they share once.
lint: ## gofmt, vet, staticcheck, tidy go.mod files, workflows; builds without cgo for Linux, macOS and Windows
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet $(MODULES:%=./%/...)
	$(GO) run $(STATICCHECK) $(MODULES:%=./%/...)
	@for p in $(PLATFORMS); do echo "build $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./... ./franz/... ./cmd/neli/... ./cmd/neli-outbox/... || exit 1; done
	cd lab/release && $(GO) run ./tidy -check
	$(GO) run $(ACTIONLINT) -shellcheck= .github/workflows/*.yml
	CGO_ENABLED=0 $(GO) vet .
	$(GO) vet -tags neli_nolibrdkafka .
	$(GO) vet -tags booted ./cmd/neli && $(GO) run $(STATICCHECK) -tags booted ./cmd/neli
	@export GOWORK=off; oldest=go$$($(GO) list -m -f '{{.GoVersion}}'); if GOTOOLCHAIN=$$oldest $(GO) version; then GOTOOLCHAIN=$$oldest $(GO) vet ./...; \
		else echo "not checked with $$oldest: this toolchain cannot be had here"; fi

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

generate: ## the documents that programs write: docs/cli.md, docs/metrics.md, docs/benchmarks.md
	cd cmd/neli && NELI_UPDATE=1 $(GO) test -count=1 -run TestReference ./internal/cli
	cd metrics && $(GO) generate ./...
	cd lab/bench && $(GO) run . report

tidy: ## each module's go.mod and go.sum, released or not
	cd lab/release && $(GO) run ./tidy

VULNDB ?= https://vuln.go.dev
vulnerabilities: ## known ones in what we require; asks a public database, or VULNDB=file:///dir with a copy of it
	for m in $(MODULES); do (cd $$m && $(GO) run $(GOVULNCHECK) -db $(VULNDB) ./...) || exit 1; done

# Rehearsed in a clone first: what cannot be installed is not tagged.
release: ## VERSION=vX.Y.Z: writes it, commits, tags all modules, says what to push; pushes nothing
	$(if $(VERSION),,$(error VERSION is missing: make release VERSION=vX.Y.Z))
	cd lab/release && $(GO) run ./check -version $(VERSION) && $(GO) run ./cut $(VERSION)

release-check: ## can users get, build, install and run what is committed; is each break of the API in the changelog; image, units, manifests
	@command -v systemd-analyze >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd) >/dev/null 2>&1 || \
		{ echo "systemd-analyze is missing, and could not be installed: apt-get install systemd, as root"; exit 1; }
	cd lab/release && $(GO) test -count=1 -timeout 10m ./...
	cd lab/release && $(GO) run ./check

fuzz: ## FUZZTIME=20s each
	$(GO) test -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZTIME) ./internal/lease
	$(GO) test -run '^$$' -fuzz FuzzConfig -fuzztime $(FUZZTIME) .
	$(GO) test -run '^$$' -fuzz FuzzRedact -fuzztime $(FUZZTIME) ./internal/redact
	cd peers && $(GO) test -run '^$$' -fuzz FuzzLog -fuzztime $(FUZZTIME) ./smalllog
	cd peers && $(GO) test -run '^$$' -fuzz FuzzHost -fuzztime $(FUZZTIME) .

# Built first: a compiler beside the brokers would be measured, too.
bench: ## OF='run -n 20' beside etcd and raft, half an hour; writes docs/benchmarks.md
	cd lab/bench && $(GO) build -o bench . && ./bench $(or $(OF),run -n 20)

clean:
	rm -rf dist dist-extras lab/*/logs examples/logs examples/*/logs cmd/*/logs lab/chaos/chaos-report lab/bench/bench
