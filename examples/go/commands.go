// Runs commands at a client, each at most once, and keeps each end until the relay has it. PROTOCOL.md, section 5.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
)

const (
	// How many ids of commands are remembered, so that none runs twice, and how many ends wait for their result_ack.
	remembered, keptEnds = 1000, 256
	// Ends that are sent again count as unsolicited frames, of which 100 a second are safe.
	resendPause = 10 * time.Millisecond
	// Members of the params that come from the relay, and never from a caller.
	reserved = "__cooperative_site_"
	// The header of a result is not longer.
	longestHeader = 512
)

// A refusal with one of these codes does not mean that the end is wrong: it is sent again with the next welcome.
var sendAgain = map[string]bool{"store_unavailable": true, "draining": true, "rate_limited": true, "internal": true}

// ActionError ends a command with this code and message.
type ActionError struct{ Code, Message string }

func (e ActionError) Error() string { return e.Message }

// Action is what the client offers. Check refuses params before they run. The context of Run ends when the command is
// cancelled or its time is over; Run then returns the error of the context.
type Action struct {
	Advertisement json.RawMessage
	Check         func(params map[string]json.RawMessage) error
	Run           func(ctx context.Context, params map[string]json.RawMessage, progress func(value any)) (any, error)
}

// Commands are the commands of one client. Report is called with what happens, for a log.
type Commands struct {
	Link    *Link
	Actions map[string]Action
	// IsHere says whether a context, in which a command wants to run, is there.
	IsHere func(contextID string) bool
	Report func(event string, more map[string]any)

	mutex    sync.Mutex
	refusing bool
	longestFrame int
	running  map[string]context.CancelFunc
	seen     []string
	// The commands that arrived, and whose ends the relay has not acknowledged.
	unacknowledged map[string]bool
	outbox         []Frame
	settled        sync.Cond
}

// NewCommands returns an empty set of commands.
func NewCommands(link *Link, actions map[string]Action, isHere func(string) bool,
	report func(string, map[string]any)) *Commands {
	commands := &Commands{Link: link, Actions: actions, IsHere: isHere, Report: report,
		running: map[string]context.CancelFunc{}, unacknowledged: map[string]bool{}, longestFrame: 1 << 20}
	commands.settled.L = &commands.mutex
	return commands
}

// Resend sends each kept end again, oldest first. To be called after each welcome.
func (c *Commands) Resend() {
	c.mutex.Lock()
	kept := append([]Frame(nil), c.outbox...)
	c.mutex.Unlock()
	for _, end := range kept {
		c.Link.Send(end)
		time.Sleep(resendPause)
	}
}

// Unacknowledged returns the commands that arrived and whose ends the relay has not acknowledged, ended or not: for the
// hello.
func (c *Commands) Unacknowledged() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ids := []string{}
	for id := range c.unacknowledged {
		ids = append(ids, id)
	}
	return ids
}

// Settle returns when no command runs and the relay has each end.
func (c *Commands) Settle() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for len(c.running)+len(c.outbox) > 0 {
		c.settled.Wait()
	}
}

// Refuse makes the client refuse further commands.
func (c *Commands) Refuse() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.refusing = true
}

// Received takes a frame of the relay, and ignores those that are not about commands.
func (c *Commands) Received(frame Frame) {
	header := frame.Header
	switch header.Type {
	case "command":
		c.command(frame)
	case "cancel":
		c.mutex.Lock()
		if stop := c.running[header.CommandID]; stop != nil {
			stop()
		}
		c.mutex.Unlock()
	case "result_ack":
		c.mutex.Lock()
		delete(c.unacknowledged, header.CommandID)
		c.mutex.Unlock()
		c.forget(header.CommandID)
	case "refused":
		isEnd := header.Frame == "result" || header.Frame == "error" || header.Frame == "cancelled"
		if isEnd && !sendAgain[header.CodeText()] {
			c.forget(header.CommandID)
		}
	}
}

func (c *Commands) command(frame Frame) {
	id := frame.Header.CommandID
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.running[id] != nil {
		c.Link.Send(Frame{Header: Header{Type: "ack", CommandID: id}})
		return
	}
	for _, end := range c.outbox {
		if end.Header.CommandID == id {
			c.Link.Send(end)
			return
		}
	}
	for _, seen := range c.seen {
		if seen == id {
			c.end(Frame{Header: failure(id, "result_unavailable", "The command has run.")})
			return
		}
	}
	c.seen = append(c.seen, id)
	c.unacknowledged[id] = true
	if len(c.seen) > remembered {
		delete(c.unacknowledged, c.seen[0])
		c.seen = c.seen[1:]
	}
	// A little early, so that the relay has the end before the deadline, at which it records one itself.
	within := time.Duration(frame.Header.RemainingMs) * time.Millisecond * 9 / 10
	ctx, stop := context.WithTimeout(context.Background(), within)
	c.running[id] = stop
	go func() {
		end := c.run(ctx, frame)
		stop()
		c.mutex.Lock()
		defer c.mutex.Unlock()
		delete(c.running, id)
		c.end(end)
	}()
}

// run handles a command, and returns its one end.
func (c *Commands) run(ctx context.Context, frame Frame) Frame {
	id := frame.Header.CommandID
	value, err := c.handle(ctx, frame)
	payload, unwritable := json.Marshal(value)
	var failed ActionError
	switch {
	case err == nil && (unwritable != nil || !c.fits(payload)):
		return Frame{Header: failure(id, "result_unavailable", "The result is no JSON, or too large.")}
	case err == nil:
		return Frame{Header: Header{Type: "result", CommandID: id}, Payload: payload}
	case errors.Is(err, context.Canceled):
		return Frame{Header: Header{Type: "cancelled", CommandID: id}}
	case errors.Is(err, context.DeadlineExceeded):
		return Frame{Header: failure(id, "client_timeout", "The time of the command is over.")}
	case errors.As(err, &failed):
		return Frame{Header: failure(id, failed.Code, failed.Message)}
	default:
		return Frame{Header: failure(id, "handler_failed", err.Error())}
	}
}

// fits reports whether a frame with this payload may be sent. A longer end must not be sent: it would be lost.
func (c *Commands) fits(payload []byte) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(payload)+longestHeader <= c.longestFrame
}

// Bound sets the most bytes of a frame, as a welcome says.
func (c *Commands) Bound(longestFrame int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.longestFrame = longestFrame
}

func (c *Commands) handle(ctx context.Context, frame Frame) (any, error) {
	id := frame.Header.CommandID
	c.mutex.Lock()
	refusing := c.refusing
	c.mutex.Unlock()
	if refusing {
		return nil, ActionError{"client_denied", "The client is leaving."}
	}
	action, known := c.Actions[frame.Header.Action]
	if !known {
		return nil, ActionError{"unknown_action", "There is no action " + frame.Header.Action + "."}
	}
	params := map[string]json.RawMessage{}
	if frame.Payload != nil {
		if err := json.Unmarshal(frame.Payload, &params); err != nil {
			return nil, ActionError{"arguments_invalid", "an object was expected"}
		}
	}
	for name := range params {
		if strings.HasPrefix(name, reserved) {
			delete(params, name)
		}
	}
	if err := action.Check(params); err != nil {
		return nil, ActionError{"arguments_invalid", err.Error()}
	}
	// Right before the handler, because a context may go while a client decides about a command.
	if place := frame.Header.ContextID; place != "" && !c.IsHere(place) {
		return nil, ActionError{"context_gone", "There is no context " + place + "."}
	}
	c.Link.Send(Frame{Header: Header{Type: "ack", CommandID: id}})
	c.Report("running", map[string]any{"command_id": id})
	return action.Run(ctx, params, func(value any) {
		if payload, err := json.Marshal(value); err == nil {
			c.Link.Send(Frame{Header: Header{Type: "progress", CommandID: id}, Payload: payload})
		}
	})
}

// end keeps an end, and sends it if there is a link. The mutex is held.
func (c *Commands) end(end Frame) {
	c.outbox = append(c.outbox, end)
	if len(c.outbox) > keptEnds {
		c.Report("end_dropped", map[string]any{"command_id": c.outbox[0].Header.CommandID})
		c.outbox = c.outbox[1:]
	}
	c.Report("ended", map[string]any{"command_id": end.Header.CommandID, "type": end.Header.Type})
	c.Link.Send(end)
	c.settled.Broadcast()
}

func (c *Commands) forget(id string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for i, end := range c.outbox {
		if end.Header.CommandID == id {
			c.outbox = append(c.outbox[:i:i], c.outbox[i+1:]...)
			break
		}
	}
	c.settled.Broadcast()
}

func failure(id, code, message string) Header {
	if runes := []rune(message); len(runes) > 256 {
		message = string(runes[:256])
	}
	text, _ := json.Marshal(code)
	return Header{Type: "error", CommandID: id, Code: text, Message: message}
}
