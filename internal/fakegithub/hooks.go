package fakegithub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// hookID is the id of the App's one webhook.
const hookID = 400_000_001

func (s *Server) getHookConfig(*call) *reply { return ok(s.hookConfig()) }

func (s *Server) hookConfig() obj {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	config := obj{"content_type": "json", "insecure_ssl": "0", "url": s.courier.url}
	if s.secret != "" {
		config["secret"] = "********"
	}
	return config
}

// listDeliveries answers newest first and pages by cursor, never by page number.
func (s *Server) listDeliveries(c *call) *reply {
	size := clamp(c.query("per_page", "30"), 30, 100)
	before := int64(1 << 62)
	if cursor := c.query("cursor", ""); cursor != "" {
		id, err := strconv.ParseInt(strings.TrimPrefix(cursor, "v1_"), 10, 64)
		if err != nil {
			return problem(http.StatusBadRequest, "Invalid cursor")
		}
		before = id
	}
	redelivery := c.query("redelivery", "")
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	list := []obj{}
	var last int64
	more := false
	for _, d := range slices.Backward(s.courier.records) {
		if !s.courier.keeps(d) || d.id >= before || redelivery != "" && redelivery != strconv.FormatBool(d.redelivery) {
			continue
		}
		if len(list) == size {
			more = true
			break
		}
		list = append(list, d.render())
		last = d.id
	}
	rep := ok(list)
	if more {
		rep.header.Set("Link", fmt.Sprintf(`<%s>; rel="next"`, s.link(c, "cursor", "v1_"+strconv.FormatInt(last, 10))))
	}
	return rep
}

func (d *delivery) render() obj {
	body := obj{"id": d.id, "guid": d.guid, "delivered_at": stamp(d.at), "redelivery": d.redelivery,
		"duration": float64(d.duration.Milliseconds()) / 1000, "status": d.status, "status_code": d.code, "event": d.event,
		"action": nil, "installation_id": nil, "repository_id": nil, "throttled_at": nil}
	if d.action != "" {
		body["action"] = d.action
	}
	if d.installationID != 0 {
		body["installation_id"] = d.installationID
	}
	if d.repositoryID != 0 {
		body["repository_id"] = d.repositoryID
	}
	return body
}

func (s *Server) getDelivery(c *call) *reply {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	d := s.courier.find(c.id())
	if d == nil {
		return notFound()
	}
	body := d.render()
	body["url"] = d.url
	headers := d.headers
	if headers == nil { // dropped before it was sent
		headers = s.courier.headers(d)
	}
	var payload any = string(d.payload)
	if json.Valid(d.payload) {
		payload = json.RawMessage(d.payload)
	}
	body["request"] = obj{"headers": headers, "payload": payload}
	body["response"] = obj{"headers": obj{}, "payload": d.answer}
	return ok(body)
}

func (s *Server) attemptDelivery(c *call) *reply {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	d := s.courier.find(c.id())
	if d == nil {
		return notFound()
	}
	s.courier.again(d)
	return &reply{status: http.StatusAccepted, header: http.Header{}, body: obj{}}
}

func (c *courier) find(id int64) *delivery {
	for _, d := range c.records {
		if d.id == id && c.keeps(d) {
			return d
		}
	}
	return nil
}
