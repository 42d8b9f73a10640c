module countersign.example/orders

go 1.18
