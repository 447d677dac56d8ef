// SPDX-License-Identifier: BSD-3-Clause

// Checks with Porcupine whether what the clients of a replicated pool were told can be true: the
// histories that ./dev explore --failover writes (tests/replication/failover_file.hpp).
//
// A history has a line of JSON for each term of a primary. No operation is under way when a term
// begins or ends, so each term is judged alone: from the state in which the one before it ended, in
// some order that respects the clients' clocks, each operation gives the answer that its client was
// told, and the state in the end is the one that the next term begins with. If that holds for all
// terms, the whole history is linearizable.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	accounts  = 16
	registers = 8
)

type state struct {
	Accounts  [accounts]int64   `json:"accounts"`
	Registers [registers]uint64 `json:"registers"`
}

type operation struct {
	Number   uint64  `json:"number"` // says what it does, as Operation in failover_history.hpp
	Client   int     `json:"client"`
	Invoked  int64   `json:"invoked"`
	Returned int64   `json:"returned"`
	Answer   *uint64 `json:"answer"` // null: the client was told nothing
}

type term struct {
	Term       int         `json:"term"`
	Begin      state       `json:"begin"`
	Operations []operation `json:"operations"`
	End        state       `json:"end"`
}

func (o operation) transfers() bool { return o.Number&1 == 0 }
func (o operation) writes() bool    { return o.Number>>1&1 != 0 }
func (o operation) from() int       { return int(o.Number >> 2 & 15) }
func (o operation) to() int         { return int(o.Number >> 6 & 15) }
func (o operation) register() int   { return int(o.Number >> 2 & 7) }
func (o operation) amount() int64   { return int64(o.Number >> 10 & 63) }

func (o operation) told(answer uint64) bool { return o.Answer == nil || *o.Answer == answer }

// The last operation of a term: what is there is what the next term begins with.
type all struct{}

func accountsModel(begin [accounts]int64) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return begin },
		Step: func(before, input, output interface{}) (bool, interface{}) {
			now := before.([accounts]int64)
			if _, ends := input.(all); ends {
				return now == output.([accounts]int64), now
			}
			o := input.(operation)
			left := now[o.from()] - o.amount()
			now[o.from()] = left
			now[o.to()] += o.amount()
			return o.told(uint64(left)), now
		},
	}
}

func registerModel(begin uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return begin },
		Step: func(before, input, output interface{}) (bool, interface{}) {
			now := before.(uint64)
			if _, ends := input.(all); ends {
				return now == output.(uint64), now
			}
			o := input.(operation)
			if !o.told(now) {
				return false, now
			}
			if o.writes() {
				return true, o.Number
			}
			return true, now
		},
	}
}

// The operations that are chosen, and the one that sees the end.
func history(t term, end interface{}, chosen func(operation) bool) []porcupine.Operation {
	var ops []porcupine.Operation
	last := int64(0)
	for _, o := range t.Operations {
		if o.Returned > last {
			last = o.Returned
		}
		if chosen(o) {
			ops = append(ops, porcupine.Operation{
				ClientId: o.Client, Input: o, Call: o.Invoked, Return: o.Returned})
		}
	}
	return append(ops, porcupine.Operation{Input: all{}, Call: last + 1, Output: end, Return: last + 2})
}

func judge(t term, patience time.Duration) string {
	say := func(what string, found porcupine.CheckResult) string {
		if found == porcupine.Ok {
			return ""
		}
		if found == porcupine.Unknown {
			return fmt.Sprintf("term %d: %s: not decided within %v", t.Term, what, patience)
		}
		return fmt.Sprintf("term %d: %s: no order of the operations gives these answers", t.Term, what)
	}
	ops := history(t, t.End.Accounts, operation.transfers)
	found := porcupine.CheckOperationsTimeout(accountsModel(t.Begin.Accounts), ops, patience)
	if wrong := say("accounts", found); wrong != "" {
		return wrong
	}
	for r := 0; r < registers; r++ {
		ops := history(t, t.End.Registers[r],
			func(o operation) bool { return !o.transfers() && o.register() == r })
		found := porcupine.CheckOperationsTimeout(registerModel(t.Begin.Registers[r]), ops, patience)
		if wrong := say(fmt.Sprintf("register %d", r), found); wrong != "" {
			return wrong
		}
	}
	return ""
}

func fail(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(2)
}

func main() {
	patience := flag.Duration("patience", time.Minute, "how long one part of a term may take")
	asJSON := flag.Bool("json", false, "the result as JSON")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: check [--patience D] [--json] HISTORY\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	file, err := os.Open(flag.Arg(0))
	if err != nil {
		fail("%v", err)
	}
	defer file.Close()
	decoder := json.NewDecoder(bufio.NewReader(file))
	decoder.DisallowUnknownFields()
	terms, operations := 0, 0
	wrong := []string{}
	var before state
	for decoder.More() {
		var t term
		if err := decoder.Decode(&t); err != nil {
			fail("%s: found what is no term: %v", flag.Arg(0), err)
		}
		if terms > 0 && t.Begin != before {
			wrong = append(wrong, fmt.Sprintf("term %d begins with another state than the one before ends", t.Term))
		}
		before = t.End
		if problem := judge(t, *patience); problem != "" {
			wrong = append(wrong, problem)
		}
		terms++
		operations += len(t.Operations)
	}
	if terms == 0 {
		fail("%s: found no term, expected a line of JSON for each", flag.Arg(0))
	}
	if *asJSON {
		text, _ := json.Marshal(map[string]interface{}{
			"terms": terms, "operations": operations, "wrong": wrong})
		fmt.Println(string(text))
	} else {
		fmt.Printf("Porcupine: %d operations in %d terms: %d wrong\n", operations, terms, len(wrong))
		for _, one := range wrong {
			fmt.Println(one)
		}
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}
