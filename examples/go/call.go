// The caller. A call whose answer is lost with its link is awaited over the next link, so that it runs once.
// PROTOCOL.md, section 7.
package main

import (
	"encoding/json"
	"flag"
)

type call struct {
	link     *Link
	request  Header
	params   json.RawMessage
	admitted bool
	answer   chan Frame
}

func runCall(url string, token func() string, args []string) int {
	flags := flag.NewFlagSet("call", flag.ExitOnError)
	user := flags.String("user", "", "the user of the client; by default the user of the token")
	commandID := flags.String("command-id", newID(), "an id of your own")
	contextID := flags.String("context-id", "", "the context of the client in which the command may run")
	connectWithin := flags.Int64("connect-within-ms", 0, "how long to wait for the client to connect")
	respondWithin := flags.Int64("respond-within-ms", 30_000, "how long the command may take")
	_ = flags.Parse(args)
	if flags.NArg() < 2 {
		fail("usage: callboard-example call [flags] <client-id> <action> [params]")
	}
	own := &call{answer: make(chan Frame, 1), request: Header{Ref: "1", UserID: *user, CommandID: *commandID,
		ClientID: flags.Arg(0), Action: flags.Arg(1), ContextID: *contextID, ConnectWithinMs: *connectWithin, RespondWithinMs: *respondWithin}}
	if flags.NArg() > 2 {
		own.params = json.RawMessage(flags.Arg(2))
	}
	// A link without client_id belongs to a caller only.
	hello := func(token string, _ int64) Frame { return Frame{Header: Header{Type: "hello", Token: token}} }
	own.link = &Link{URL: url, Token: token, Hello: hello, Opened: own.opened, Received: own.received,
		Report: report}
	ended := make(chan error, 1)
	go func() { ended <- own.link.Run() }()
	select {
	case err := <-ended:
		return exitCode(err)
	case answer := <-own.answer:
		own.link.Close()
		<-ended
		return own.print(answer)
	}
}

func (c *call) opened(Header) {
	header := c.request
	header.Stages = "all"
	if !c.admitted {
		header.Type = "invoke"
		c.link.Send(Frame{Header: header, Payload: c.params})
		return
	}
	header.Type, header.WithinMs = "await", header.RespondWithinMs
	header.Action, header.ContextID, header.ConnectWithinMs, header.RespondWithinMs = "", "", 0, 0
	c.link.Send(Frame{Header: header})
}

func (c *call) received(frame Frame) {
	header := frame.Header
	if header.Ref != c.request.Ref {
		return
	}
	switch header.Type {
	case "stage":
		// The command is admitted, so it is never invoked again.
		c.admitted = true
		report("stage", map[string]any{"stage": header.Stage})
	case "outcome":
		if header.Outcome == "" {
			// The command is live. Its relay shuts down, or the wait was too short.
			c.opened(Header{})
			return
		}
		c.settle(frame)
	case "refused":
		c.settle(frame)
	}
}

func (c *call) settle(frame Frame) {
	select {
	case c.answer <- frame:
	default:
	}
}

func (c *call) print(frame Frame) int {
	header := frame.Header
	if header.Type == "refused" {
		report("refused", map[string]any{"code": header.CodeText(), "message": header.Message})
		return 1
	}
	report("outcome", map[string]any{"outcome": header.Outcome, "execution": header.Execution, "result": frame.Payload,
		"error_code": header.ErrorCode, "command_id": header.CommandID})
	if header.Outcome == "completed" {
		return 0
	}
	return 1
}
