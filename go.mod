module github.com/goneli/neli

go 1.25.0

require (
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/confluentinc/confluent-kafka-go/v2 v2.15.1
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.47.0
	pgregory.net/rapid v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
