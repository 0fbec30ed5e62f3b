# Targets for people who change the-loop. "make test" is the one command that says whether it works.

GO      ?= go
STATIC  := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VULN    := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB  := v0.0.0-20261105234957-e22db6528018
SCANNER := go1.27.3

# -short leaves out a burst to a hundred threads, which Slack's limits make two minutes long.
BENCH = $(GO) test -short -timeout 15m -run '^$$'

.PHONY: test quick heavy soak lint vuln bench node

test: quick heavy ## everything

quick: ## what needs tmux and nothing else, under the race detector
	$(GO) test -race -shuffle=on -short -p 1 -timeout 20m ./...

heavy: node ## what needs npm or Chromium, or takes long: once, without the race detector
	$(GO) test -p 1 -timeout 40m -skip TestReal ./...
	$(GO) test -p 1 -timeout 30m -run TestReal -skip TestRealTalk ./sessions/harness ./bot ./cmd/the-loop
	GO="$(GO)" testdata/agents/talk.sh

soak: ## ten thousand replies under kills and faults; takes a quarter of an hour, and prints what became of them
	$(GO) test ./bot -run 'TestSoak$$' -count 1 -v -timeout 90m -soak 10000

node: ## Slack's own Bolt, which judges the local workspace, and the agents' own programs
	npm ci --prefix testdata/bolt --no-audit --no-fund
	npm ci --prefix testdata/agents --no-audit --no-fund --ignore-scripts

lint:
	test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATIC) ./...

vuln: ## known vulnerabilities, with the database as a module, so that a mirror of modules is all it takes
	dir=$$($(GO) mod download -json golang.org/x/vulndb@$(VULNDB) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && out=$$(mktemp -d) && \
	$(GO) run golang.org/x/vulndb/cmd/indexdb@$(VULNDB) -vulns "$$dir/data/osv" -out "$$out" && \
	GOTOOLCHAIN=$(SCANNER) $(GO) run $(VULN) -db "file://$$out" ./... ; code=$$?; rm -rf "$$out"; exit $$code

bench: ## every benchmark beside its floor: what is cheap until its figure is steady, what makes many sessions once; some four minutes
	$(BENCH) -bench 'Scale' -benchtime 1x ./sessions/core
	$(BENCH) -bench . -skip 'Scale' -benchtime 1s ./sessions/core
	$(BENCH) -bench '^BenchmarkBurst|ThousandThreads|TurnToThread' -benchtime 1x ./bot
	$(BENCH) -bench 'ReplyToPane' -benchtime 3x ./bot
	$(BENCH) -bench 'Idle' -benchtime 1x ./cmd/the-loop
	$(BENCH) -bench 'Version|Hook' -benchtime 1s ./cmd/the-loop
	$(BENCH) -bench 'ThousandIdle' -benchtime 300ms ./bot
	$(BENCH) -bench . -benchtime 300ms $$($(GO) list ./... | grep -v -e '/bot$$' -e '/sessions/core$$' -e '/cmd/the-loop$$')
