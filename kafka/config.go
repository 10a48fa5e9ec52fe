package kafka

// ConfigMap holds librdkafka's configuration properties by their own names. Values are
// strings, booleans or integers.
type ConfigMap map[string]any
