# examples/pytorch/ace_shards.py where scripts are hard on it: threads, forks, Ctrl-C
# in the middle, and what changes behind its back.
# bats file_tags=long,plain
load helper
patient
load hosts
load pytorch

@test "Gradients: layers that are computed in two threads go out in their order" {
	cat >threads.py <<-'E'
	from common import *
	import threading

	class Two(nn.Module):
	    """As a model whose parts are on two devices: a thread for each."""
	    def __init__(self):
	        super().__init__()
	        for k in "ab":
	            setattr(self, k, nn.ParameterList(
	                [nn.Parameter(torch.zeros(4)) for _ in range(60)]))

	def back(part, first):
	    sum((p * float(first + i)).sum() for i, p in enumerate(part)).backward()

	sys.setswitchinterval(1e-5)
	model = Two()
	grads = ace.Gradients(model, "cat", "edge1")
	for _ in range(40):
	    model.zero_grad(set_to_none=True)
	    threads = [threading.Thread(target=back, args=(list(part), first))
	               for part, first in ((model.a, 1), (model.b, 1001))]
	    for t in threads:
	        t.start()
	    for t in threads:
	        t.join()
	    grads.average()
	    for part, first in (model.a, 1), (model.b, 1001):
	        for i, p in enumerate(part):
	            assert torch.equal(p.grad, torch.full((4,), float(first + i))), i
	grads.close()
	E
	py threads.py
}
