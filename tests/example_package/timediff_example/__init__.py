"""One of each: a generator, a network, a sampler, a metric and a source."""
