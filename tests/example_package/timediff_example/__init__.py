"""One of each: a generator, a network, a sampler, a metric, an attack and a source."""
