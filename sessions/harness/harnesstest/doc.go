// Package harnesstest has what tests need that run the real agents: a model on loopback, and each agent's program as npm
// installed it, set up in a home of its own so that nothing of the machine leaks in and nothing leaves it.
package harnesstest
