package egress

import "strings"

// local are the hosts that programs reach without the proxy: servers of their own.
const local = "localhost,127.0.0.1,::1"

// Clients are the environment variables by which programs find the proxy at host:port, beside those of env, which
// they add to: the usual ones; Node.js looks at them only when it is told to (since 22.21 and 24.5); Java never does,
// so Maven, Gradle and the starters of most Java programs get options.
func Clients(host, port string, env map[string]string) map[string]string {
	url := "http://" + host + ":" + port
	set := map[string]string{"NODE_USE_ENV_PROXY": "1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		set[name], set[strings.ToLower(name)] = url, url
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		set[name] = local
	}
	options := strings.NewReplacer("HOST", host, "PORT", port).Replace("-Dhttp.proxyHost=HOST -Dhttp.proxyPort=PORT -Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT")
	for _, name := range []string{"MAVEN_OPTS", "JAVA_OPTS"} {
		set[name] = strings.TrimSpace(env[name] + " " + options)
	}
	return set
}
