// The client with the actions `lamp.set` and, for `callboard conformance`, `conformance.echo`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const leaveWithin = 10 * time.Second

var lampAdvertisement = json.RawMessage(`{"name":"lamp.set","summary":"Switches the lamp","checks_arguments":true,` +
	`"schema":{"type":"object","required":["on"],"properties":{"on":{"type":"boolean"},` +
	`"fade_ms":{"type":"integer","minimum":0},"note":{}}}}`)

// lamp is the program behind the action. It fades for fade_ms.
type lamp struct {
	mutex sync.Mutex
	on    bool
}

func checkLamp(params map[string]json.RawMessage) error {
	var on bool
	if json.Unmarshal(params["on"], &on) != nil {
		return errors.New("/on must be boolean")
	}
	var fade uint32
	if text, given := params["fade_ms"]; given && json.Unmarshal(text, &fade) != nil {
		return errors.New("/fade_ms must be an integer of at least 0")
	}
	return nil
}

func (l *lamp) set(ctx context.Context, params map[string]json.RawMessage, progress func(any)) (any, error) {
	var fadeMs int64
	_ = json.Unmarshal(params["fade_ms"], &fadeMs)
	if fadeMs > 60_000 {
		return nil, errors.New("the lamp cannot fade that slowly")
	}
	if fadeMs > 0 {
		progress(map[string]any{"fading_ms": fadeMs})
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(fadeMs) * time.Millisecond):
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	was := l.on
	_ = json.Unmarshal(params["on"], &l.on)
	return map[string]any{"was": was, "is": l.on, "note": params["note"]}, nil
}

var echoAdvertisement = json.RawMessage(`{"name":"conformance.echo","checks_arguments":true,"schema":{"type":"object",` +
	`"properties":{"progress":{},"wait_ms":{"type":"integer","minimum":0},"fail":{"type":"string"}}}}`)

func checkEcho(params map[string]json.RawMessage) error {
	var wait uint32
	if text, given := params["wait_ms"]; given && json.Unmarshal(text, &wait) != nil {
		return errors.New("/wait_ms must be an integer of at least 0")
	}
	return nil
}

// echo is the action by which `callboard conformance` checks a client. It returns its params, after it did what they
// ask for.
func echo(ctx context.Context, params map[string]json.RawMessage, progress func(any)) (any, error) {
	if value, given := params["progress"]; given {
		progress(value)
	}
	var waitMs int64
	_ = json.Unmarshal(params["wait_ms"], &waitMs)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Duration(waitMs) * time.Millisecond):
	}
	var reason string
	if json.Unmarshal(params["fail"], &reason) == nil {
		return nil, errors.New(reason)
	}
	return params, nil
}

// client is a link, the commands that arrive over it, and an orderly end.
type client struct {
	link     *Link
	commands *Commands
	// The place where the commands of this client run. Its id is never used again.
	contextID string
	mutex     sync.Mutex
	closing   bool
	closed    chan struct{}
	once      sync.Once
}

func runClient(url string, token func() string, clientID string) error {
	own := &client{closed: make(chan struct{}), contextID: "lamp-" + newID()}
	// New for each start of the program, and the same whenever this run reconnects.
	instanceID := newID()
	own.link = &Link{URL: url, Token: token, Opened: own.opened, Received: own.received, Report: report}
	own.link.Hello = func(token string, attempt int64) Frame {
		header := Header{Type: "hello", Token: token, ClientID: clientID, InstanceID: instanceID,
			ClientType: "console", Places: true, LinkAttempt: attempt}
		received, _ := json.Marshal(own.commands.Unacknowledged())
		payload := `{"metadata":{"language":"go"},"actions":[` + string(lampAdvertisement) + `,` +
			string(echoAdvertisement) + `],"received":` + string(received) + `}`
		return Frame{Header: header, Payload: json.RawMessage(payload)}
	}
	light := &lamp{}
	actions := map[string]Action{
		"lamp.set":         {Advertisement: lampAdvertisement, Check: checkLamp, Run: light.set},
		"conformance.echo": {Advertisement: echoAdvertisement, Check: checkEcho, Run: echo},
	}
	isHere := func(contextID string) bool { return contextID == own.contextID }
	own.commands = NewCommands(own.link, actions, isHere, report)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		own.leave()
	}()
	return own.link.Run()
}

func (c *client) opened(welcome Header) {
	report("connected", map[string]any{"epoch": welcome.Epoch, "resumed": welcome.Resumed})
	c.commands.Bound(welcome.MaxFrameBytes)
	if c.isClosing() {
		c.link.Send(Frame{Header: Header{Type: "closing"}})
	} else {
		place := `{"context_id":"` + c.contextID + `","status":"active","ownership":"worker","title":"The lamp"}`
		payload := json.RawMessage(`{"contexts":{"snapshot":true,"set":[` + place + `]}}`)
		c.link.Send(Frame{Header: Header{Type: "report"}, Payload: payload})
	}
	c.commands.Resend()
}

func (c *client) received(frame Frame) {
	header := frame.Header
	switch header.Type {
	case "closed":
		// A lost link is not opened again: this would replace an instance that has connected since.
		c.link.StayAway()
		c.once.Do(func() { close(c.closed) })
	case "replaced":
		report("replaced", map[string]any{"instance_id": header.InstanceID})
	case "refused":
		report("refused", map[string]any{"frame": header.Frame, "code": header.CodeText()})
		if header.Frame == "closing" {
			c.commands.Refuse()
			c.once.Do(func() { close(c.closed) })
		}
	}
	c.commands.Received(frame)
}

// leave takes no further command, runs those that it has, waits until the relay has each end, and closes.
func (c *client) leave() {
	c.mutex.Lock()
	c.closing = true
	c.mutex.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c.link.Send(Frame{Header: Header{Type: "closing"}}) {
			<-c.closed
		}
		c.commands.Settle()
	}()
	select {
	case <-done:
	case <-time.After(leaveWithin):
		report("left_early", nil)
	}
	c.link.Close()
}

func (c *client) isClosing() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.closing
}
