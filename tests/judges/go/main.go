// Prints what go-nvml sees: a line for each card, or part of one, or Xid, its fields parted by tabs.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const waitMilliseconds = 30_000

func main() {
	log.SetFlags(0)
	views := map[string]func(nvml.Interface){"cards": cards, "parts": parts, "xid": xid}
	view := "cards"
	if len(os.Args) > 1 {
		view = os.Args[1]
	}
	show, known := views[view]
	if !known {
		log.Fatalf("%s: use cards, parts or xid", view)
	}
	library := nvml.New()
	// NVIDIA's programs close the library between two looks, and open it again.
	for range 2 {
		must(library.Init())
		must(library.Shutdown())
	}
	must(library.Init())
	show(library)
	must(library.Shutdown())
}

func cards(library nvml.Interface) {
	for index, card := range all(library) {
		uuid := got(card.GetUUID())
		rates := got(card.GetUtilizationRates())
		memory := got(card.GetMemoryInfo_v2())
		old := got(card.GetMemoryInfo())
		if old.Total != memory.Total || old.Used != memory.Used+memory.Reserved {
			log.Fatalf("%s: memory is %+v to new programs, and %+v to old ones", uuid, memory, old)
		}
		if again := got(got(library.DeviceGetHandleByUUID(uuid)).GetIndex()); again != index {
			log.Fatalf("%s: it is card %d by index, and %d by UUID", uuid, index, again)
		}
		row(
			got(card.GetIndex()), uuid, got(card.GetName()), memory.Total, memory.Used, rates.Gpu,
			got(card.GetPowerUsage()), got(card.GetTemperature(nvml.TEMPERATURE_GPU)),
		)
		// What only has to answer.
		got(card.GetPciInfo())
		got(card.GetMinorNumber())
		got(card.GetArchitecture())
		got(card.GetComputeRunningProcesses())
	}
}

// parts prints each MIG device: its card, number, GPU instance, UUID and MiB.
func parts(library nvml.Interface) {
	for index, card := range all(library) {
		mode, _, done := card.GetMigMode()
		if done == nvml.ERROR_NOT_SUPPORTED || mode != nvml.DEVICE_MIG_ENABLE {
			continue
		}
		must(done)
		for number := range got(card.GetMaxMigDeviceCount()) {
			part, done := card.GetMigDeviceHandleByIndex(number)
			if done == nvml.ERROR_NOT_FOUND {
				continue
			}
			must(done)
			whole := got(part.GetDeviceHandleFromMigDeviceHandle())
			if is, of := got(card.GetUUID()), got(whole.GetUUID()); is != of {
				log.Fatalf("part %d of %s says that it is one of %s", number, is, of)
			}
			memory := got(part.GetMemoryInfo())
			row(index, number, got(part.GetGpuInstanceId()), got(part.GetUUID()), memory.Total>>20)
		}
	}
}

// xid waits for one, and prints its card, number, and whether it is of the whole card.
func xid(library nvml.Interface) {
	set := got(library.EventSetCreate())
	for _, card := range all(library) {
		if got(card.GetSupportedEventTypes())&nvml.EventTypeXidCriticalError == 0 {
			log.Fatalf("%s: it reports no Xids", got(card.GetUUID()))
		}
		must(card.RegisterEvents(nvml.EventTypeXidCriticalError, set))
	}
	fmt.Println("waiting")
	event := got(set.Wait(waitMilliseconds))
	isWhole := event.GpuInstanceId == 0xFFFFFFFF && event.ComputeInstanceId == 0xFFFFFFFF
	row(got(event.Device.GetUUID()), event.EventData, isWhole)
	must(set.Free())
}

func all(library nvml.Interface) []nvml.Device {
	found := make([]nvml.Device, got(library.DeviceGetCount()))
	for index := range found {
		found[index] = got(library.DeviceGetHandleByIndex(index))
	}
	return found
}

func row(fields ...any) {
	for index, field := range fields {
		if index > 0 {
			fmt.Print("\t")
		}
		fmt.Print(field)
	}
	fmt.Println()
}

func must(done nvml.Return) {
	if done != nvml.SUCCESS {
		log.Output(2, nvml.ErrorString(done))
		os.Exit(1)
	}
}

func got[Value any](value Value, done nvml.Return) Value {
	if done != nvml.SUCCESS {
		log.Output(2, fmt.Sprintf("%T: %s", value, nvml.ErrorString(done)))
		os.Exit(1)
	}
	return value
}
