package neligrpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

func (c *client) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	attempt, now, err := c.attempt(ctx, opts)
	if err != nil {
		return nil, err
	}
	first, err := open(attempt, desc, cc, method, opts...)
	if err != nil || desc.ClientStreams {
		return first, err
	}
	s := &stream{client: c, ctx: ctx, call: now}
	s.now.Store(&first)
	s.again = func() (grpc.ClientStream, error) {
		attempt, _, err := c.attempt(ctx, opts)
		if err != nil {
			return nil, err
		}
		return open(attempt, desc, cc, method, opts...)
	}
	return s, nil
}

// stream is a stream of answers to one message. It begins anew, once, if the server refuses it before its handler ran.
type stream struct {
	client *client
	ctx    context.Context
	call   *call                             // the first attempt
	again  func() (grpc.ClientStream, error) // begins the second; nil when the server has answered
	now    atomic.Pointer[grpc.ClientStream] // of the last attempt
	sent   atomic.Pointer[any]               // atomic: SendMsg and RecvMsg may be called concurrently
}

func (s *stream) current() grpc.ClientStream { return *s.now.Load() }

func (s *stream) Header() (metadata.MD, error) { return s.current().Header() }
func (s *stream) Trailer() metadata.MD         { return s.current().Trailer() }
func (s *stream) Context() context.Context     { return s.current().Context() }
func (s *stream) CloseSend() error             { return s.current().CloseSend() }

// SendMsg keeps the message: grpc does not let callers change it either.
func (s *stream) SendMsg(m any) error {
	s.sent.Store(&m)
	return s.current().SendMsg(m)
}

// RecvMsg begins the stream anew, if need be.
func (s *stream) RecvMsg(m any) error {
	now, again := s.current(), s.again
	err := now.RecvMsg(m)
	s.again = nil
	if err == nil || again == nil || !s.client.refused(now.Trailer()) || !s.client.moved(s.ctx, s.call) {
		return err
	}
	next, err := again()
	if err != nil {
		return err
	}
	s.now.Store(&next)
	if sent := s.sent.Load(); sent != nil {
		_ = next.SendMsg(*sent) // RecvMsg says what is wrong
	}
	_ = next.CloseSend()
	return next.RecvMsg(m)
}
