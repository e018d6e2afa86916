// Load drives an ext_authz gRPC server with pre-encoded CheckRequests and prints throughput, latency quantiles and the status
// codes inside the CheckResponses, as one line of JSON.
//
//	load -addr 127.0.0.1:9191 -frames checks.bin -n 60000 -conns 2 -streams 16
//
// The frames file is a run of [u32 big-endian length][CheckRequest bytes]. The address may be unix:///path.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
)

// raw passes messages through as bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return *(v.(*[]byte)), nil }
func (raw) Unmarshal(b []byte, v any) error { *(v.(*[]byte)) = append([]byte(nil), b...); return nil }
func (raw) Name() string                    { return "proto" }

// rpcCode reads google.rpc.Status.code out of a CheckResponse without a schema: field 1, then field 1. Absent means 0.
func rpcCode(b []byte) int {
	if len(b) < 2 || b[0] != 0x0a {
		return 0
	}
	n, k := binary.Uvarint(b[1:])
	if k <= 0 || len(b) < 1+k+int(n) {
		return -1
	}
	s := b[1+k : 1+k+int(n)]
	if len(s) > 1 && s[0] == 0x08 {
		c, _ := binary.Uvarint(s[1:])
		return int(c)
	}
	return 0
}

type outcome struct {
	latencies []int64
	codes     map[int]int
	failed    int64
	took      time.Duration
}

type load struct {
	addr    string
	frames  [][]byte
	conns   int
	streams int
	// rate in calls a second for an open loop; 0 is a closed loop
	rate float64
}

func (l load) run(total int) outcome {
	var next, failed int64
	latencies := make([]int64, total)
	codes := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now()
	for c := 0; c < l.conns; c++ {
		cc, err := grpc.NewClient(l.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer cc.Close()
		for s := 0; s < l.streams; s++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				mine := map[int]int{}
				for {
					i := atomic.AddInt64(&next, 1) - 1
					if i >= int64(total) {
						break
					}
					t := time.Now()
					if l.rate > 0 {
						due := start.Add(time.Duration(float64(i) / l.rate * 1e9))
						time.Sleep(time.Until(due))
						t = due
					}
					var out []byte
					err := cc.Invoke(context.Background(), "/envoy.service.auth.v3.Authorization/Check", &l.frames[int(i)%len(l.frames)], &out)
					latencies[i] = time.Since(t).Nanoseconds()
					if err != nil {
						if atomic.AddInt64(&failed, 1) == 1 {
							fmt.Fprintln(os.Stderr, err)
						}
					} else {
						mine[rpcCode(out)]++
					}
				}
				mu.Lock()
				for k, v := range mine {
					codes[k] += v
				}
				mu.Unlock()
			}()
		}
	}
	wg.Wait()
	return outcome{latencies, codes, failed, time.Since(start)}
}

func main() {
	addr := flag.String("addr", "127.0.0.1:9191", "the server")
	file := flag.String("frames", "checks.bin", "the CheckRequests")
	n := flag.Int("n", 60000, "counted calls")
	conns := flag.Int("conns", 2, "connections")
	streams := flag.Int("streams", 16, "concurrent calls per connection")
	warm := flag.Int("warm", 5000, "calls before the counted ones")
	rate := flag.Float64("rate", 0, "open-loop rate in calls/s; 0 is a closed loop")
	flag.Parse()
	encoding.RegisterCodec(raw{})
	b, err := os.ReadFile(*file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var frames [][]byte
	for len(b) >= 4 {
		size := int(binary.BigEndian.Uint32(b))
		frames = append(frames, b[4:4+size])
		b = b[4+size:]
	}
	l := load{*addr, frames, *conns, *streams, *rate}
	if *warm > 0 {
		l.run(*warm)
	}
	o := l.run(*n)
	sort.Slice(o.latencies, func(i, j int) bool { return o.latencies[i] < o.latencies[j] })
	q := func(p float64) float64 { return float64(o.latencies[int(p*float64(len(o.latencies)-1))]) / 1e3 }
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"per_s": int(float64(*n) / o.took.Seconds()), "p50_us": q(.5), "p99_us": q(.99), "p999_us": q(.999), "codes": o.codes, "failed": o.failed,
	})
}
