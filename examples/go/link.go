// Keeps a link to a relay open: frames, hello, heartbeat, reconnecting with jitter. PROTOCOL.md, sections 1 to 4, 6 and 9.
//
// It does not renew tokens over an open link (`auth`): it reads the token again for each hello.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	subprotocol   = "callboard.v1"
	welcomeWithin = 15 * time.Second
	// Attempts are counted from 0 again once a link was open for so long.
	stableAfter = 10 * time.Second
	writeWithin = 10 * time.Second
	// A frame from the relay may be longer than what the relay accepts, by its header.
	longestFrame = 2 << 20

	unauthenticated = 4401
	forbidden       = 4403
	replaced        = 4409
)

// Header is the first line of a frame. Only the members that this program reads or writes.
type Header struct {
	Type            string `json:"type"`
	Token           string `json:"token,omitempty"`
	ClientID        string `json:"client_id,omitempty"`
	InstanceID      string `json:"instance_id,omitempty"`
	ClientType      string `json:"client_type,omitempty"`
	Places          bool   `json:"places,omitempty"`
	LinkAttempt     int64  `json:"link_attempt,omitempty"`
	ContextID       string `json:"context_id,omitempty"`
	UserID          string `json:"user_id,omitempty"`
	CommandID       string `json:"command_id,omitempty"`
	Action          string `json:"action,omitempty"`
	Ref             string `json:"ref,omitempty"`
	Stages          string `json:"stages,omitempty"`
	ConnectWithinMs int64  `json:"connect_within_ms,omitempty"`
	RespondWithinMs int64  `json:"respond_within_ms,omitempty"`
	WithinMs        int64  `json:"within_ms,omitempty"`
	RemainingMs     int64  `json:"remaining_ms,omitempty"`
	Epoch           int64  `json:"epoch,omitempty"`
	Resumed         bool   `json:"resumed,omitempty"`
	DeadMs          int64  `json:"dead_ms,omitempty"`
	MaxFrameBytes   int    `json:"max_frame_bytes,omitempty"`
	Stage           string `json:"stage,omitempty"`
	Outcome         string `json:"outcome,omitempty"`
	Execution       string `json:"execution,omitempty"`
	ErrorCode       string `json:"error_code,omitempty"`
	ErrorMessage    string `json:"error_message,omitempty"`
	Frame           string `json:"frame,omitempty"`
	Message         string `json:"message,omitempty"`
	Reason          string `json:"reason,omitempty"`
	Reconnect       *bool  `json:"reconnect,omitempty"`
	AfterMs         int64  `json:"after_ms,omitempty"`
	// A text in `refused` and `error`, and a number in `bye`.
	Code json.RawMessage `json:"code,omitempty"`
}

// CodeText is the code of `refused`.
func (h Header) CodeText() string {
	var text string
	_ = json.Unmarshal(h.Code, &text)
	return text
}

// CodeNumber is the code of `bye`.
func (h Header) CodeNumber() int {
	var number int
	_ = json.Unmarshal(h.Code, &number)
	return number
}

// Frame is a header and the JSON text of its payload; nil if it has none.
type Frame struct {
	Header  Header
	Payload json.RawMessage
}

func (f Frame) bytes() []byte {
	text, err := json.Marshal(f.Header)
	if err != nil {
		panic(err) // All members are plain values.
	}
	if f.Payload == nil {
		return text
	}
	return append(append(text, '\n'), f.Payload...)
}

// parse splits a frame at its first line feed.
func parse(text []byte) (Frame, error) {
	header, payload, found := bytes.Cut(text, []byte("\n"))
	var frame Frame
	if found {
		frame.Payload = payload
	}
	return frame, json.Unmarshal(header, &frame.Header)
}

// Ended is returned when the link must not be opened again.
type Ended struct {
	Code   int
	Reason string
}

func (e Ended) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Reason) }

// Link is opened again after each loss. Hello gets the number of the attempt. Opened is called with each welcome, and Received with each other frame except
// ping and bye; both on one goroutine. Report is called with what happens, for a log.
type Link struct {
	URL      string
	Token    func() string
	Hello    func(token string, attempt int64) Frame
	Opened   func(welcome Header)
	Received func(frame Frame)
	Report   func(event string, more map[string]any)

	mutex   sync.Mutex
	socket  *websocket.Conn
	leaving bool
	// How many sockets were opened: the number of the present attempt.
	sockets int64
}

// Run returns nil after Close, or after StayAway when the link is lost.
func (l *Link) Run() error {
	attempt, refused := 0, ""
	for !l.isLeaving() {
		token := l.Token()
		if token == refused {
			return Ended{unauthenticated, "unauthenticated"}
		}
		stable, bye := l.one(token)
		if l.isLeaving() {
			return nil
		}
		code := bye.CodeNumber()
		if code == unauthenticated {
			refused = token
		} else if code != 0 && !mayReconnect(bye) {
			return Ended{code, bye.Reason}
		}
		if stable {
			attempt = 0
		}
		longest := 500 * time.Millisecond << attempt
		if longest > 30*time.Second {
			longest = 30 * time.Second
		}
		if attempt < 16 {
			attempt++
		}
		wait := time.Duration(rand.Int63n(int64(longest)))
		time.Sleep(wait + time.Duration(bye.AfterMs)*time.Millisecond)
	}
	return nil
}

func mayReconnect(bye Header) bool {
	if bye.Reconnect != nil {
		return *bye.Reconnect
	}
	code := bye.CodeNumber()
	return code != forbidden && code != replaced
}

// one opens one socket and reads it until it is lost. It returns whether the link was stable, and the bye, or a bye with
// the close code.
func (l *Link) one(token string) (stable bool, bye Header) {
	dialer := websocket.Dialer{Subprotocols: []string{subprotocol}, HandshakeTimeout: welcomeWithin}
	socket, answer, err := dialer.Dial(l.URL, nil)
	if err != nil {
		reason := err.Error()
		if answer != nil {
			reason += ": HTTP " + answer.Status
		}
		l.Report("not_opened", map[string]any{"reason": reason})
		return false, bye
	}
	var openedAt time.Time
	defer func() { stable = !openedAt.IsZero() && time.Since(openedAt) >= stableAfter }()
	defer socket.Close()
	defer l.use(nil)
	socket.SetReadLimit(longestFrame)
	silence := welcomeWithin
	// The socket before this one is closed, and nothing that it still receives is read.
	l.sockets++
	if write(socket, l.Hello(token, l.sockets)) != nil {
		return false, bye
	}
	for {
		// A link on which nothing is heard is dropped without a closing handshake.
		_ = socket.SetReadDeadline(time.Now().Add(silence))
		_, text, err := socket.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			if bye.Code == nil && errors.As(err, &closed) {
				bye.Code, bye.Reason = json.RawMessage(fmt.Sprint(closed.Code)), closed.Text
			}
			return false, bye
		}
		frame, err := parse(text)
		if err != nil {
			return false, bye
		}
		switch frame.Header.Type {
		case "ping":
			l.Send(Frame{Header: Header{Type: "pong"}})
		case "bye":
			bye = frame.Header
		case "welcome":
			openedAt, silence = time.Now(), time.Duration(frame.Header.DeadMs)*time.Millisecond
			l.use(socket)
			l.Opened(frame.Header)
		default:
			l.Received(frame)
		}
	}
}

// Send writes a frame. It reports false if there is no open link now.
func (l *Link) Send(frame Frame) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.socket != nil && write(l.socket, frame) == nil
}

// StayAway keeps a lost link from being opened again.
func (l *Link) StayAway() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.leaving = true
}

// Close closes the link for good, with 1000.
func (l *Link) Close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.leaving = true
	if l.socket != nil {
		text := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = l.socket.WriteControl(websocket.CloseMessage, text, time.Now().Add(writeWithin))
	}
}

func (l *Link) use(socket *websocket.Conn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.socket = socket
}

func (l *Link) isLeaving() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.leaving
}

func write(socket *websocket.Conn, frame Frame) error {
	_ = socket.SetWriteDeadline(time.Now().Add(writeWithin))
	return socket.WriteMessage(websocket.TextMessage, frame.bytes())
}
