# usage: ns bench/ns2.tcl FLOWS MBPS SECONDS
# SACK TCP flows over a dumbbell, as bench/sim.py writes it for anabranch sim; prints the number of data packets sent.
lassign $argv flows mbps seconds
set ns [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags
foreach {name value} {
    tcpTick_ 0.01 minrto_ 0.2 rtxcur_init_ 3.0 window_ 10000 windowInit_ 2 packetSize_ 1000 singledup_ 1
} { Agent/TCP set $name $value }
set access [expr {max(100, 10 * $mbps)}]
proc duplex {from to rate delay queue} {
    global ns
    $ns duplex-link $from $to ${rate}Mb ${delay}ms DropTail
    $ns queue-limit $from $to $queue
    $ns queue-limit $to $from $queue
}
set left [$ns node]
set right [$ns node]
duplex $left $right $mbps 20 [expr {int($mbps * 100 / 15)}]
set starts [new RNG]
$starts seed 1
for {set i 0} {$i < $flows} {incr i} {
    set sender [$ns node]
    set receiver [$ns node]
    duplex $sender $left $access 1 5000
    duplex $right $receiver $access [expr {1 + 2.6 * $i / ($flows - 1)}] 5000
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$starts uniform 0 2] "$ftp start"
}
$ns at $seconds {
    set sent 0
    for {set i 0} {$i < $flows} {incr i} { incr sent [$tcp($i) set ndatapack_] }
    puts $sent
    exit 0
}
$ns run
