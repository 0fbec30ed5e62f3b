package socket

import (
	"context"
	"sync"
)

// queue is a bounded first-in-first-out queue between goroutines whose push never blocks.
type queue[T any] struct {
	max    int
	wakeup chan struct{}

	mu    sync.Mutex // guards the fields that follow
	items []T
}

func newQueue[T any](limit int) *queue[T] {
	return &queue[T]{max: limit, wakeup: make(chan struct{}, 1)}
}

// push appends v. It reports false, and drops v, when the queue is full.
func (q *queue[T]) push(v T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) >= q.max {
		return false
	}
	q.items = append(q.items, v)
	select {
	case q.wakeup <- struct{}{}:
	default:
	}
	return true
}

// takeAll waits until there is something and removes all of it; ok is false when ctx ended first.
func (q *queue[T]) takeAll(ctx context.Context) (items []T, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		items, q.items = q.items, nil
		q.mu.Unlock()
		if len(items) > 0 {
			return items, true
		}
		select {
		case <-q.wakeup:
		case <-ctx.Done():
		}
	}
	return nil, false
}
