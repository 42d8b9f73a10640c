// An order service as a tool behind Countersign, without an SDK: docs/http-tool.md with Go's standard library.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type object = map[string]any

var orders sync.Map // by key; a service that has a database stores the key and the order in one transaction

func decode(part string) (made object) {
	raw, _ := base64.RawURLEncoding.DecodeString(part)
	json.Unmarshal(raw, &made)
	return made
}

func isGood(token, purpose, key string, body []byte) bool {
	parts := append(strings.Split(token, "."), "", "")
	mac := hmac.New(sha256.New, []byte(os.Getenv("ORDERS_IDENTITY_SECRET")))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	own := base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	claims := decode(parts[1])
	exp, _ := claims["exp"].(float64)
	return len(parts) == 5 && decode(parts[0])["alg"] == "HS256" && hmac.Equal([]byte(own), []byte(parts[2])) &&
		claims["iss"] == "countersign" && claims["aud"] == "orders" && exp > float64(time.Now().Unix()) &&
		claims["tool"] == "orders.place" && claims["purpose"] == purpose && claims["idempotency_key"] == key &&
		claims["body_sha256"] == fmt.Sprintf("%x", sha256.Sum256(body))
}

func answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	key, status, data, order := r.Header.Get("Idempotency-Key"), 200, any(object{"outcome": "did_not_happen"}), object{}
	purpose := map[string]string{"/tools/orders.place": "call", "/tools/orders.place/reconcile": "reconcile"}[r.URL.Path]
	if json.Unmarshal(body, &order) != nil || !isGood(r.Header.Get("Countersign-Identity"), purpose, key, body) {
		status, data = 401, object{"message": "Countersign-Identity was refused"}
	} else if first, known := orders.Load(key); purpose == "reconcile" && known {
		data = object{"outcome": "happened", "data": first}
	} else if purpose == "call" {
		order["order_id"] = "o_" + key
		data, _ = orders.LoadOrStore(key, order)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(data)
}

func main() {
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(answer)))
}
