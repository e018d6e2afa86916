// The cases of the gRPC clients with grpc-go: reads the table of cases and the messages from a folder, and prints the end of
// each case as one line of JSON.
//
//	client -addr 127.0.0.1:9191 -dir messages [-ca ca.pem]
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
)

// raw passes messages through as bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return *(v.(*[]byte)), nil }
func (raw) Unmarshal(b []byte, v any) error { *(v.(*[]byte)) = append([]byte(nil), b...); return nil }
func (raw) Name() string                    { return "proto" }

type clientCase struct {
	Name        string `json:"name"`
	Method      string `json:"method"`
	Message     string `json:"message"`
	DeadlineMs  int    `json:"deadlineMs"`
	IsCancelled bool   `json:"isCancelled"`
}

type ended struct {
	Name   string `json:"name"`
	Status int    `json:"status"`
	Answer string `json:"answer"`
}

const (
	limit       = 30 * time.Second
	cancelAfter = 300 * time.Millisecond
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run(cc *grpc.ClientConn, each clientCase, message []byte) ended {
	deadline := limit
	if each.DeadlineMs > 0 {
		deadline = time.Duration(each.DeadlineMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if each.IsCancelled {
		time.AfterFunc(cancelAfter, cancel)
	}
	var answer []byte
	err := cc.Invoke(ctx, each.Method, &message, &answer)
	return ended{each.Name, int(status.Code(err)), hex.EncodeToString(answer)}
}

func main() {
	addr := flag.String("addr", "127.0.0.1:9191", "the server")
	dir := flag.String("dir", ".", "the folder of the cases and messages")
	ca := flag.String("ca", "", "the authority of the server's certificate; empty is plaintext")
	flag.Parse()
	encoding.RegisterCodec(raw{})
	channel := insecure.NewCredentials()
	if *ca != "" {
		secured, err := credentials.NewClientTLSFromFile(*ca, "localhost")
		if err != nil {
			fail(err)
		}
		channel = secured
	}
	cc, err := grpc.NewClient(*addr, grpc.WithTransportCredentials(channel))
	if err != nil {
		fail(err)
	}
	defer cc.Close()
	var cases []clientCase
	table, err := os.ReadFile(filepath.Join(*dir, "cases.json"))
	if err != nil {
		fail(err)
	}
	if err := json.Unmarshal(table, &cases); err != nil {
		fail(err)
	}
	for _, each := range cases {
		message, err := os.ReadFile(filepath.Join(*dir, each.Message+".bin"))
		if err != nil {
			fail(err)
		}
		_ = json.NewEncoder(os.Stdout).Encode(run(cc, each, message))
	}
}
