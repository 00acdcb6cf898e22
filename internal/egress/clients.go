package egress

import "strings"

// local lists the hosts that programs reach without the proxy: Pawl's gateway and their own servers.
const local = "localhost,127.0.0.1,::1"

// Clients adds a proxy on a loopback port to an environment of NAME=value entries: the usual variables, a switch that
// Node.js needs (since 22.21 and 24.5), and options for Maven, Gradle and most Java programs.
func Clients(port string, env []string) []string {
	url := "http://127.0.0.1:" + port
	has := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		has[name] = value
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		has[name], has[strings.ToLower(name)] = url, url
	}
	has["NO_PROXY"], has["no_proxy"], has["NODE_USE_ENV_PROXY"] = local, local, "1"
	for _, name := range []string{"MAVEN_OPTS", "JAVA_OPTS"} {
		for _, scheme := range []string{"http", "https"} {
			has[name] += " -D" + scheme + ".proxyHost=127.0.0.1 -D" + scheme + ".proxyPort=" + port
		}
		has[name] = strings.TrimSpace(has[name])
	}
	all := make([]string, 0, len(has))
	for name, value := range has {
		all = append(all, name+"="+value)
	}
	return all
}
