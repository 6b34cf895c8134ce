// A client of callboard with one action, `lamp.set`, and a caller. They print a line of JSON for each thing that happens.
//
//	go mod tidy && go build -o callboard-example .
//	RELAY=ws://127.0.0.1:4400/connect TOKEN=... ./callboard-example client [client-id]
//	RELAY=ws://127.0.0.1:4400/connect TOKEN=... ./callboard-example call [flags] <client-id> <action> [params]
//
// SIGTERM lets the running commands of a client end before it leaves. A call exits with 0 if its command completed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"
)

var printing sync.Mutex

func report(event string, more map[string]any) {
	line := map[string]any{"event": event}
	for name, value := range more {
		line[name] = value
	}
	text, _ := json.Marshal(line)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

func main() {
	rand.Seed(time.Now().UnixNano())
	if len(os.Args) < 2 {
		fail("usage: callboard-example client|call ...")
	}
	url, token := os.Getenv("RELAY"), func() string { return os.Getenv("TOKEN") }
	switch os.Args[1] {
	case "client":
		name := "lamp-1"
		if len(os.Args) > 2 {
			name = os.Args[2]
		}
		os.Exit(exitCode(runClient(url, token, name)))
	case "call":
		os.Exit(runCall(url, token, os.Args[2:]))
	default:
		fail("unknown command " + os.Args[1])
	}
}

func exitCode(err error) int {
	var ended Ended
	if errors.As(err, &ended) {
		report("ended_by_relay", map[string]any{"code": ended.Code, "reason": ended.Reason})
		return 1
	}
	report("left", nil)
	return 0
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(2)
}

// newID returns an id that is new for each start of the program.
func newID() string {
	return fmt.Sprintf("%d-%x", time.Now().UnixMilli(), rand.Uint64())
}
